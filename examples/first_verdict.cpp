#include <kevin/cpu.hpp>
#include <kevin/kevin.hpp>

#include <iostream>

kevin::Response my_agent(const kevin::Context& context) {  // a language model would read kevin::prompt_text(context)
  const std::string n = std::to_string(kevin::element_count(context.task->outputs[0].shape));
  const std::string body =
      context.turn == 0 ? "out[i] = x[i]" : "out[i] = x[i] > 0 ? x[i] : 0";  // the second try is right
  return {"ReLU keeps what is positive.", "one loop: " + body,
          "extern \"C\" void kernel(const float* x, float* out) {\n  for (long i = 0; i < " + n + "; ++i) " + body +
              ";\n}\n"};
}

int main() try {
  kevin::cpu::Evaluator evaluator;  // compiles, runs in a sandbox, checks, times
  kevin::RefinementEnv env{kevin::tasks::find("kevin/l1/19@small"), evaluator};

  kevin::Context context = env.reset(42);
  for (int turn = 0; turn < 2; ++turn) {
    auto step = env.step(my_agent(context));
    std::cout << step.info << "  score " << step.reward << '\n';
    context = step.observation;
  }
} catch (const kevin::Error& e) {  // what this machine lacks, never the kernel
  std::cerr << e.what() << '\n';
  return 2;
}
