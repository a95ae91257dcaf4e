#ifndef KEVIN_REFINE_TASK_HPP
#define KEVIN_REFINE_TASK_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kevin {

/// A tensor's extents, outermost first; contiguous, row-major.
using Shape = std::vector<std::int64_t>;

[[nodiscard]] constexpr std::int64_t element_count(const Shape& shape) noexcept {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

enum class DType { float32, float64, float16, bfloat16, int32, int64, boolean };

[[nodiscard]] constexpr std::string_view to_string(DType t) noexcept {
  switch (t) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::boolean:
      return "bool";
  }
  return "float32";
}

/// Bytes of one element.
[[nodiscard]] constexpr std::int64_t size_of(DType t) noexcept {
  switch (t) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 4;
}

/// How the values of an input or parameter are drawn: element by element from `kind`, then `random_scale`, then
/// `structure`.
struct Distribution {
  enum class Kind {
    uniform,   ///< uniform in [a, b)
    normal,    ///< normal with mean a and standard deviation b
    constant,  ///< every element is a
    integer,   ///< integers uniform in {a, ..., b - 1}
    sign,      ///< -1 or +1 with equal odds
    given,     ///< always the values that the tensor comes with, TensorSpec::values; no other number applies
  };
  enum class Structure {
    none,
    symmetric,  ///< (R + R^T) / 2 over the last two extents, which are equal
    upper,      ///< zero below the diagonal of the last two extents
    lower,      ///< zero above the diagonal of the last two extents
    softmax,    ///< softmax over the last extent: rows of positive numbers that sum to 1
  };
  Kind kind = Kind::uniform;
  double a = 0;
  double b = 1;
  bool random_scale = false;  ///< the whole tensor times one number that is uniform in [0, 1)
  Structure structure = Structure::none;
  friend bool operator==(const Distribution&, const Distribution&) = default;
};

/// An input, a learned parameter or an output of a task.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::float32;
  Distribution distribution{};  ///< unused for outputs
  /// The elements' bytes, for Distribution::Kind::given alone. Equality is that of the pointer.
  std::shared_ptr<const std::vector<std::byte>> values{};
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// An argument of an operation: flag, integer, number, text (a parameter's name, a mode) or list of integers.
using OpArgument = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

/// One step of the reference: `out = op(in..., args...)`. Names are single-assignment; `in` names task inputs,
/// earlier results, or parameters as "param:NAME".
struct Op {
  std::string op;
  std::map<std::string, OpArgument> args;
  std::vector<std::string> in;
  std::string out;
  Shape out_shape;
  friend bool operator==(const Op&, const Op&) = default;
};

/// An element passes when |candidate - expected| <= absolute + relative * |expected| + spread * sigma, sigma being the
/// standard deviation of the expected output that it belongs to (over all its finite elements, dividing by their
/// number); written so that a NaN fails. Integers and booleans have to be equal.
///
/// The spread makes a tolerance follow the scale of an output that is not known beforehand: rounding errors of a sum
/// are as large as its terms, also where the sum itself is near 0.
struct Tolerance {
  double absolute = 1e-4;
  double relative = 1e-4;
  double spread = 0;
  friend bool operator==(const Tolerance&, const Tolerance&) = default;
};

/// A reference that is no op graph: a TorchScript module, or a function of the user's own program. Opaque here; what
/// can be run is a kevin::tasks::Program. Immutable, and shared by the copies of a task.
class ExternalReference {
 public:
  virtual ~ExternalReference() = default;
  /// What it computes, for agents and people: lines of pseudo code or of comments in terms of kernel_arguments, each
  /// ended by a newline; describe() shows them as the body of a function.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 protected:
  explicit ExternalReference(std::string text) : text_(std::move(text)) {}
  ExternalReference(const ExternalReference&) = default;
  ExternalReference& operator=(const ExternalReference&) = default;

 private:
  std::string text_;
};

/// A reference operation: its graph, inputs, learned parameters, outputs and tolerance.
/// A candidate implements the whole graph; it receives inputs, then parameters, then outputs, in the order listed.
struct Task {
  std::string id;    ///< e.g. "kevin/l1/23@small"
  std::string name;  ///< e.g. "Softmax"
  std::vector<TensorSpec> inputs{};
  std::vector<TensorSpec> parameters{};
  std::vector<Op> ops{};
  std::vector<TensorSpec> outputs{};  ///< `name` is the `out` of the op that makes it
  Tolerance tolerance{};
  std::vector<std::string> flags{};  ///< known peculiarities of the task, e.g. "identity_on_given_inputs"
  std::string notes{};
  /// Computes the outputs where there are no ops; null otherwise. Equality is that of the pointer.
  std::shared_ptr<const ExternalReference> external{};
  friend bool operator==(const Task&, const Task&) = default;
};

}  // namespace kevin

#endif  // KEVIN_REFINE_TASK_HPP
