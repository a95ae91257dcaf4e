#ifndef KEVIN_EVAL_CUDA_NVRTC_HPP
#define KEVIN_EVAL_CUDA_NVRTC_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/cuda/compiler_options.hpp"

namespace kevin::cuda {

/// An NVRTC of this machine: the library and the headers that came with it. Neither is needed to build this library.
struct Nvrtc {
  std::filesystem::path file;                    ///< libnvrtc.so.N, canonical
  std::vector<std::filesystem::path> libraries;  ///< it and what belongs to it (libnvrtc-builtins)
  std::vector<std::filesystem::path> include;    ///< folders with cuda_fp16.h, cub/, cuda/std/, ...; may be empty
  std::string identity;                          ///< changes when one of these files does
};

namespace detail {

namespace fs = std::filesystem;

/// The number in "libnvrtc.so.13", 0 for "libnvrtc.so", -1 for another name.
[[nodiscard]] inline int nvrtc_number(const std::string& name) {
  constexpr std::string_view stem = "libnvrtc.so";
  if (!name.starts_with(stem)) return -1;
  if (name.size() == stem.size()) return 0;
  const std::string rest = name.substr(stem.size());
  if (rest[0] != '.' || rest.size() > 4 || rest.find_first_not_of("0123456789", 1) != std::string::npos) return -1;
  return rest.size() == 1 ? -1 : std::atoi(rest.c_str() + 1);
}

/// The newest NVRTC in a folder; empty = none.
[[nodiscard]] inline fs::path nvrtc_in(const fs::path& folder) {
  fs::path best;
  int number = -1;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const int n = nvrtc_number(entry->path().filename().string());
    if (n > number && fs::is_regular_file(entry->path(), error)) best = entry->path(), number = n;
  }
  return best;
}

/// Folders directly below `parent` whose name begins with `prefix`, the highest name first.
[[nodiscard]] inline std::vector<fs::path> folders_like(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) all.push_back(entry->path());
  }
  // cuda-12.9 before cuda-12.10 in the alphabet: compare lengths first
  std::sort(all.begin(), all.end(), [](const fs::path& a, const fs::path& b) {
    const auto &x = a.native(), &y = b.native();
    return std::pair(x.size(), x) > std::pair(y.size(), y);
  });
  return all;
}

[[nodiscard]] inline fs::path environment_path(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Where NVRTC may lie, in the order of looking.
[[nodiscard]] inline std::vector<fs::path> nvrtc_folders() {
  std::vector<fs::path> all;
  const auto toolkit = [&all](const fs::path& root) {
    if (root.empty()) return;
    for (const char* place : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      all.push_back(root / place);
  };
  const auto python = [&all](const fs::path& prefix) {  // wheels: nvidia-cuda-nvrtc
    if (prefix.empty()) return;
    for (const fs::path& version : folders_like(prefix / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path nvidia = version / packages / "nvidia";
        for (const fs::path& cuda : folders_like(nvidia, "cu1")) all.push_back(cuda / "lib");
        all.push_back(nvidia / "cuda_nvrtc" / "lib");
      }
    }
  };
  toolkit(environment_path("CUDA_HOME"));
  toolkit(environment_path("CUDA_PATH"));
  toolkit("/usr/local/cuda");
  for (const fs::path& folder : folders_like("/usr/local", "cuda-")) toolkit(folder);
  toolkit("/opt/cuda");
  if (const char* list = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream folders(list);
    for (std::string folder; std::getline(folders, folder, ':');)
      if (folder.starts_with('/')) all.push_back(folder);
  }
  python(environment_path("VIRTUAL_ENV"));
  const fs::path conda = environment_path("CONDA_PREFIX");
  if (!conda.empty()) all.push_back(conda / "lib");
  python(conda);
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"})
    all.push_back(folder);
  python("/usr/local");
  python("/usr");
  if (const fs::path home = environment_path("HOME"); home.is_absolute()) python(home / ".local");
  return all;
}

/// Asks the loader, which knows folders that nobody else does (/etc/ld.so.conf); empty = it finds none.
[[nodiscard]] inline fs::path nvrtc_of_loader() {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) continue;
    const link_map* map = nullptr;
    const bool known = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map;
    const fs::path path = known ? map->l_name : "";
    ::dlclose(handle);
    if (!path.empty()) return path;
  }
  return {};
}

/// Folders of headers that belong to a library in `folder`.
[[nodiscard]] inline std::vector<fs::path> nvrtc_headers(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    const fs::path real = fs::canonical(path, error);
    if (!error && fs::is_directory(real, error) && std::find(all.begin(), all.end(), real) == all.end())
      all.push_back(real);
  };
  // <root>/lib64, <root>/targets/x86_64-linux/lib, nvidia/cu13/lib, nvidia/cuda_nvrtc/lib
  const fs::path up = folder.parent_path(), two = up.parent_path();
  std::vector<fs::path> candidates{up / "include", two / "include", two / "cuda_runtime" / "include"};
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const fs::path root = environment_path(name); !root.empty()) candidates.push_back(root / "include");
  }
  for (const fs::path& path : candidates) {
    if (!fs::exists(path / "cuda_fp16.h", error)) continue;
    add(path);
    for (const fs::path& cccl : {path / "cccl", two / "cuda_cccl" / "include"}) {
      if (fs::exists(cccl / "cub", error) || fs::exists(cccl / "cuda" / "std", error)) add(cccl);
    }
    break;
  }
  return all;
}

/// Sum over names, sizes and times of what lies below a folder.
[[nodiscard]] inline std::string folder_identity(const fs::path& folder) {
  std::uint64_t sum = 0, files = 0;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end && files < 50'000;
       entry.increment(error)) {
    struct stat info {};
    if (::lstat(entry->path().c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;
    ++files;
    std::uint64_t one = std::hash<std::string>{}(entry->path().native());
    for (const auto part : {static_cast<std::uint64_t>(info.st_size), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                            static_cast<std::uint64_t>(info.st_mtim.tv_nsec)})
      one = (one ^ part) * 0x9e3779b97f4a7c15ULL;
    sum += one;  // the order of a folder's entries means nothing
  }
  return folder.string() + ' ' + std::to_string(files) + ' ' + std::to_string(sum) + '\n';
}

}  // namespace detail

/// Finds NVRTC: `options.nvrtc`, else $KEVIN_NVRTC (each a library or its folder), else below $CUDA_HOME and
/// $CUDA_PATH, /usr/local/cuda, /usr/local/cuda-*, in $LD_LIBRARY_PATH, the system's library folders, Python's packages
/// (of $VIRTUAL_ENV, $CONDA_PREFIX, the system, the user) and where the loader looks. Its headers are looked for beside
/// it. Throws Error(unsupported) that says where it looked and how to get it, Error(not_found) when an include folder
/// does not exist.
[[nodiscard]] inline Nvrtc find_nvrtc(const CompilerOptions& options) {
  namespace fs = std::filesystem;
  const fs::path variable = detail::environment_path("KEVIN_NVRTC");
  const fs::path named = !options.nvrtc.empty() ? options.nvrtc : variable;
  Nvrtc found;
  std::error_code error;
  if (!named.empty()) {
    found.file = fs::is_directory(named, error) ? detail::nvrtc_in(named) : named;
    if (found.file.empty() || !fs::is_regular_file(found.file, error)) {
      throw Error(ErrorCode::unsupported,
                  std::string(!options.nvrtc.empty() ? "CompilerOptions::nvrtc" : "$KEVIN_NVRTC") + " (" +
                      named.string() + ") names no libnvrtc.so");
    }
  } else {
    for (const fs::path& folder : detail::nvrtc_folders()) {
      found.file = detail::nvrtc_in(folder);
      if (!found.file.empty()) break;
    }
    if (found.file.empty()) found.file = detail::nvrtc_of_loader();
  }
  if (found.file.empty()) {
    throw Error(ErrorCode::unsupported,
                "NVRTC, the compiler for CUDA candidates, is not found (libnvrtc.so.12 or later; looked below "
                "$CUDA_HOME, $CUDA_PATH, /usr/local/cuda*, in $LD_LIBRARY_PATH, the system's library folders and "
                "Python's packages): install it (pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl, "
                "or the CUDA toolkit), or name it in $KEVIN_NVRTC or CompilerOptions::nvrtc");
  }
  const fs::path folder = fs::absolute(found.file).parent_path();
  found.file = fs::canonical(found.file);
  found.include = detail::nvrtc_headers(folder);
  if (found.include.empty()) found.include = detail::nvrtc_headers(found.file.parent_path());
  for (const fs::path& place : {folder, found.file.parent_path()}) {
    for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().filename().string().starts_with("libnvrtc")) found.libraries.push_back(entry->path());
    }
  }
  for (const fs::path& path : options.include) {
    const fs::path real = fs::canonical(path, error);
    if (error || !fs::is_directory(real)) {
      throw Error(ErrorCode::not_found, "CompilerOptions::include: no folder " + path.string());
    }
    found.include.insert(found.include.begin() + (&path - options.include.data()), real);  // these come first
  }
  struct stat info {};
  std::sort(found.libraries.begin(), found.libraries.end());
  found.libraries.erase(std::unique(found.libraries.begin(), found.libraries.end()), found.libraries.end());
  for (const fs::path& path : found.libraries) {
    if (::stat(path.c_str(), &info) == 0)
      found.identity += path.string() + ' ' + std::to_string(info.st_size) + ' ' + std::to_string(info.st_mtim.tv_sec) +
                        '.' + std::to_string(info.st_mtim.tv_nsec) + '\n';
  }
  for (const fs::path& path : found.include) found.identity += detail::folder_identity(path);
  return found;
}

}  // namespace kevin::cuda

#endif  // KEVIN_EVAL_CUDA_NVRTC_HPP
