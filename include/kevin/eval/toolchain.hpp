#ifndef KEVIN_EVAL_TOOLCHAIN_HPP
#define KEVIN_EVAL_TOOLCHAIN_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "kevin/core/error.hpp"
#include "kevin/eval/command.hpp"

namespace kevin::eval {

/// A compiler of this machine and what compiling and linking with it needs: asked of the compiler itself, so that an
/// installation in any place works and the jail can be cut to exactly these files.
struct Toolchain {
  std::filesystem::path program;       ///< as found, absolute; links are not resolved, a compiler looks at its own name
  std::vector<std::string> arguments;  ///< that $CXX or the option brought with the name ("g++ -m64")
  bool clang = false;
  std::vector<std::string>
      flags;  ///< for every compilation: the asked ones, then those for diagnostics and code that can be loaded
  /// cc1plus and the assembler with the options that the driver gives them, without input, output and -include: calling
  /// them without the driver in between saves milliseconds, and a child that is killed leaves no child of its own.
  /// Empty for clang, whose driver is the compiler.
  std::vector<std::string> front;
  std::vector<std::string> assembler;
  std::filesystem::path linker;
  std::vector<std::string> start_files;         ///< crtbeginS.o: registers what must run at unloading
  std::vector<std::string> end_files;           ///< crtendS.o
  std::vector<std::string> c_libraries;         ///< libm, libc
  std::vector<std::string> all_libraries;       ///< and libmvec (where there), libstdc++, libgcc_s, the dynamic loader
  std::vector<std::filesystem::path> readable;  ///< what the jail has to let be read and executed
  std::vector<std::string> environment;
  std::string identity;  ///< changes whenever the same source might compile to something else
};

namespace detail {

namespace fs = std::filesystem;

[[nodiscard]] inline std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

[[nodiscard]] inline bool executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

/// ccache and its kin start the compiler for somebody else's cache: they would have to write outside the jail, and
/// results are cached here anyway.
[[nodiscard]] inline bool is_wrapper(const fs::path& path) {
  static constexpr std::array<std::string_view, 6> names{"ccache", "sccache",  "distcc",
                                                         "icecc",  "colorgcc", "buildcache"};
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  const auto is = [&](const fs::path& p) {
    return std::find(names.begin(), names.end(), p.filename().string()) != names.end();
  };
  return is(path) || (!error && is(real));
}

/// A script that starts a compiler somewhere else: what it needs cannot be seen from here.
[[nodiscard]] inline bool is_script(const fs::path& path) {
  char magic[2] = {};
  std::ifstream(path, std::ios::binary).read(magic, 2);
  return magic[0] == '#' && magic[1] == '!';
}

/// The first `name` in $PATH that is a program and no wrapper; empty = none. A name with '/' is looked at as it is.
[[nodiscard]] inline fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return executable(name) ? fs::absolute(name) : fs::path();
  const char* variable = std::getenv("PATH");
  std::istringstream path(variable && *variable ? variable : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(path, folder, ':');) {
    if (folder.empty() || folder[0] != '/') continue;  // the working directory is no place to look for a compiler
    const fs::path file = fs::path(folder) / name;
    if (executable(file) && !is_wrapper(file) && !is_script(file)) return file;
  }
  return {};
}

/// Path, size and time of the file behind `path`.
[[nodiscard]] inline std::string file_identity(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  struct stat info {};
  if (error || ::stat(real.c_str(), &info) != 0) return path.string() + " absent\n";
  return real.string() + ' ' + std::to_string(info.st_size) + ' ' + std::to_string(info.st_mtim.tv_sec) + '.' +
         std::to_string(info.st_mtim.tv_nsec) + '\n';
}

[[nodiscard]] inline CommandResult ask(const fs::path& program, std::vector<std::string> arguments,
                                       bool trace_libraries = false) {
  eval::SpawnOptions options;
  options.program = program;
  options.arguments = std::move(arguments);
  const char* path = std::getenv("PATH");
  options.environment = {"LC_ALL=C", std::string("PATH=") + (path && *path ? path : "/usr/local/bin:/usr/bin:/bin")};
  if (trace_libraries) options.environment.push_back("LD_TRACE_LOADED_OBJECTS=1");
  options.directory = "/";
  return eval::run_command(options, std::chrono::steady_clock::now() + std::chrono::seconds(20), eval::Capture::both);
}

[[nodiscard]] inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The shared libraries that a program is loaded with, as the dynamic loader lists them for ldd.
[[nodiscard]] inline std::vector<fs::path> loaded_libraries(const fs::path& program) {
  std::vector<fs::path> all;
  std::istringstream lines(ask(program, {}, true).output);
  for (std::string line; std::getline(lines, line);) {
    const auto slash = line.find('/');
    const auto end = line.rfind(" (0x");
    if (line.starts_with('\t') && slash != std::string::npos && end != std::string::npos && slash < end)
      all.push_back(line.substr(slash, end - slash));
  }
  return all;
}

/// Folders of the line "#include <...> search starts here:" on.
[[nodiscard]] inline std::vector<fs::path> include_folders(const std::string& verbose) {
  std::vector<fs::path> all;
  std::istringstream lines(verbose);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include <...>"))
      inside = true;
    else if (line.starts_with("End of search list"))
      inside = false;
    else if (inside && line.starts_with(' '))
      all.push_back(line.substr(1));
  }
  return all;
}

/// From the system's own include folders only the C library's and the kernel's headers: what else is installed there is
/// no part of C++, differs from machine to machine, and may be this library itself.
inline void add_system_headers(const fs::path& folder, std::vector<fs::path>& readable) {
  static constexpr std::array<std::string_view, 7> folders{"asm", "asm-generic", "bits", "c++", "gnu", "linux", "sys"};
  static constexpr std::array<std::string_view, 56> files{
      "alloca",  "assert",      "byteswap", "complex", "ctype",     "dirent",    "dlfcn",    "elf",
      "endian",  "err",         "errno",    "error",   "execinfo",  "fcntl",     "features", "features-time64",
      "fenv",    "fpu_control", "getopt",   "ieee754", "inttypes",  "langinfo",  "libgen",   "libintl",
      "limits",  "link",        "locale",   "malloc",  "math",      "memory",    "monetary", "nl_types",
      "poll",    "pthread",     "regex",    "sched",   "search",    "semaphore", "setjmp",   "signal",
      "spawn",   "stdc-predef", "stdint",   "stdio",   "stdio_ext", "stdlib",    "string",   "strings",
      "syscall", "tgmath",      "threads",  "time",    "uchar",     "ucontext",  "unistd",   "wait"};
  for (const std::string_view name : folders) readable.push_back(folder / name);
  for (const std::string_view name : files) readable.push_back(folder / (std::string(name) + ".h"));
  for (const char* name : {"values.h", "wchar.h", "wctype.h", "xlocale.h"}) readable.push_back(folder / name);
}

/// The words of a command as gcc -### prints it: separated by blanks, some in "..." with backslashes.
[[nodiscard]] inline std::vector<std::string> command_words(std::string_view line) {
  std::vector<std::string> all;
  std::string word;
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) all.push_back(std::exchange(word, {}));
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) all.push_back(word);
  return all;
}

/// The command of `tool` in what gcc -### printed, with `program` in place of its name and without input and output;
/// empty = not found.
[[nodiscard]] inline std::vector<std::string> dry_command(const std::string& printed, std::string_view tool,
                                                          const fs::path& program, std::string_view input) {
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(' ')) continue;
    std::vector<std::string> all = command_words(line);
    if (all.empty() || fs::path(all[0]).filename() != tool) continue;
    std::vector<std::string> kept{program.string()};
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i] == "-o")
        ++i;
      else if (all[i] != input && !(input.empty() && i + 1 == all.size()))
        kept.push_back(all[i]);
    }
    return kept;
  }
  return {};
}

[[nodiscard]] inline Toolchain locate_compiler(const std::string& wanted) {
  Toolchain t;
  const auto accept = [&](const std::string& text) {
    std::vector<std::string> parts = words(text);
    while (parts.size() > 1 && is_wrapper(parts[0])) parts.erase(parts.begin());  // "ccache g++"
    if (parts.empty()) return false;
    t.program = find_program(parts[0]);
    t.arguments.assign(parts.begin() + 1, parts.end());
    return !t.program.empty();
  };
  const char* variable = std::getenv("CXX");
  const std::string named = !wanted.empty() ? wanted : variable ? variable : "";
  bool found = !words(named).empty() ? accept(named) : accept("c++") || accept("g++") || accept("clang++");
  if (found && wanted.empty() &&
      is_script(t.program)) {  // $CXX is meant for builds; what its script starts is mostly the same
    found = accept(t.program.filename().string()) || accept("c++") || accept("g++") || accept("clang++");
  }
  if (!found) {
    throw Error(
        ErrorCode::unsupported,
        named.empty()
            ? "no C++ compiler found (c++, g++ or clang++ in PATH): install one, on Debian and Ubuntu: apt install g++"
            : "the C++ compiler \"" + named + "\" (" +
                  (wanted.empty() ? "from $CXX" : "from CompilerOptions::compiler") +
                  ") is not there: name an existing one, or install it (Debian, Ubuntu: apt install g++)");
  }
  if (is_wrapper(t.program))
    throw Error(ErrorCode::unsupported,
                t.program.string() +
                    " is a compiler cache or distributor: name the compiler itself in CompilerOptions::compiler");
  if (is_script(t.program)) {
    throw Error(ErrorCode::unsupported,
                t.program.string() +
                    " is a script that starts a compiler: name the compiler itself in CompilerOptions::compiler");
  }
  return t;
}

}  // namespace detail

/// Finds the compiler: `wanted`, else $CXX, else c++, g++, clang++ in $PATH, passing over scripts, ccache and the like;
/// where $CXX is a script, the compiler of that name in $PATH. `flags`
/// are those that candidates will be compiled with (they decide what -march=native means here).
/// Throws Error(unsupported) that says what is missing and how to get it.
[[nodiscard]] inline Toolchain find_toolchain(const std::string& wanted, const std::vector<std::string>& own_flags) {
  namespace fs = std::filesystem;
  Toolchain t = detail::locate_compiler(wanted);
  const auto asked = [&](std::vector<std::string> more) {
    std::vector<std::string> all = t.arguments;
    all.insert(all.end(), more.begin(), more.end());
    return detail::ask(t.program, std::move(all));
  };
  const CommandResult version = asked({"--version"});
  if (!version.ok() || detail::first_line(asked({"-dumpversion"}).output).find_first_of("0123456789") != 0)
    throw Error(ErrorCode::unsupported, t.program.string() + " is no C++ compiler: it does not answer as g++ and " +
                                            "clang++ do (" + detail::first_line(version.output) + ')');
  t.clang = version.output.find("clang") != std::string::npos;
  t.flags = own_flags;
  t.flags.insert(t.flags.end(), {"-fPIC", "-fno-lto", "-w", "-fdiagnostics-color=never", "-fmessage-length=0"});
  if (t.clang) {
    t.flags.insert(t.flags.end(), {"--driver-mode=g++", "-fno-caret-diagnostics", "-ferror-limit=20"});
  } else {
    t.flags.insert(t.flags.end(), {"-fno-diagnostics-show-caret", "-fdiagnostics-column-unit=byte", "-fmax-errors=20",
                                   "-frandom-seed=kernel"});
  }

  const std::string places = asked({"-print-search-dirs"}).output;
  const auto within = [&](std::string_view list, const std::string& name) -> fs::path {
    const auto at = places.find(list);
    if (at == std::string::npos) return {};
    std::istringstream folders(detail::first_line(places.substr(at + list.size())));
    for (std::string folder; std::getline(folders, folder, ':');) {
      std::error_code error;
      const fs::path path = (fs::path(folder) / name).lexically_normal();
      if (path.is_absolute() && fs::is_regular_file(path, error)) return path;
    }
    return {};
  };
  const auto file = [&](const std::string& name) {
    const fs::path path = within("libraries: =", name);
    if (!path.empty()) return path.string();
    const fs::path said = detail::first_line(asked({"-print-file-name=" + name}).output);  // clang lists fewer folders
    std::error_code error;
    return said.is_absolute() && fs::is_regular_file(said, error) ? said.lexically_normal().string() : std::string();
  };
  const auto tool = [&](const std::string& name) {
    const fs::path path = within("programs: =", name);
    return path.empty() ? detail::find_program(name) : path;
  };
  t.linker = tool("ld");
  if (t.linker.empty()) throw Error(ErrorCode::unsupported, "the linker ld is missing: install binutils");
  for (const char* name : {"libm.so.6", "libc.so.6"}) {
    t.c_libraries.push_back(file(name));
    if (t.c_libraries.back().empty())
      throw Error(ErrorCode::unsupported, std::string("the compiler does not find ") + name +
                                              ": the C library of glibc (2.34 or later) is needed");
  }
  t.all_libraries = t.c_libraries;
  for (const char* name :
       {"libmvec.so.1", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}) {
    if (const std::string path = file(name); !path.empty()) t.all_libraries.push_back(path);
  }
  if (std::none_of(t.all_libraries.begin(), t.all_libraries.end(),
                   [](const std::string& p) { return p.ends_with("libstdc++.so.6"); })) {
    throw Error(ErrorCode::unsupported,
                "the compiler does not find libstdc++.so.6: install it (Debian, Ubuntu: apt install g++)");
  }
  if (const std::string path = file("crtbeginS.o"); !path.empty()) t.start_files.push_back(path);
  if (const std::string path = file("crtendS.o"); !path.empty()) t.end_files.push_back(path);

  std::vector<std::string> verbose = t.flags;
  verbose.insert(verbose.end(), {"-E", "-x", "c++", "-v", "/dev/null"});
  const CommandResult search = asked(verbose);
  if (!search.ok())
    throw Error(ErrorCode::unsupported,
                t.program.string() +
                    " cannot compile with the flags of CompilerOptions::flags: " + search.output.substr(0, 500));

  std::vector<fs::path> programs{t.program, t.linker};
  const fs::path front = tool("cc1plus"), assembler = tool("as");
  for (const fs::path& path : {front, assembler}) {
    if (!path.empty()) programs.push_back(path);
  }
  std::set<std::string> library_folders, program_folders;
  for (const fs::path& program : programs) {
    t.readable.push_back(program);
    program_folders.insert(program.parent_path().string());
    for (const fs::path& library : detail::loaded_libraries(program)) {
      t.readable.push_back(library);
      library_folders.insert(library.parent_path().string());
    }
  }
  for (const auto* list : {&t.start_files, &t.end_files, &t.all_libraries})
    t.readable.insert(t.readable.end(), list->begin(), list->end());
  for (const fs::path& folder : detail::include_folders(search.output)) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (error || real.parent_path().filename() == "local" || real == "/") continue;  // not /usr/local/include
    const bool system = real.filename() == "include" && real.parent_path().filename() == "usr";
    const bool multiarch =
        real.parent_path().filename() == "include" && real.parent_path().parent_path().filename() == "usr";
    if (system || multiarch) {
      detail::add_system_headers(real, t.readable);
    } else {
      t.readable.push_back(real);
    }
  }
  // clang looks for gcc's files by listing the folder that holds gcc's versions
  if (const auto at = search.output.find("Selected GCC installation: "); at != std::string::npos) {
    const fs::path installation = detail::first_line(search.output.substr(at + 27));
    if (installation.is_absolute()) t.readable.push_back(installation.parent_path());
  }
#if defined(__aarch64__)
  t.readable.push_back("/proc/cpuinfo");  // where -march=native is read from
#endif
  std::erase_if(t.readable, [](const fs::path& p) { return !fs::exists(p); });
  std::sort(t.readable.begin(), t.readable.end());
  t.readable.erase(std::unique(t.readable.begin(), t.readable.end()), t.readable.end());

  // Without /etc/ld.so.cache, which the jail does not show, the loader has to be told where libraries are.
  const auto joined = [](const char* name, const std::set<std::string>& folders) {
    std::string text = name;
    for (const std::string& folder : folders) text += (text.back() == '=' ? "" : ":") + folder;
    return text;
  };
  t.environment = {"LC_ALL=C", joined("PATH=", program_folders), joined("LD_LIBRARY_PATH=", library_folders)};

  // A dry run spells out what the driver would call, and what -march=native is on this processor.
  const auto dry = [&](const char* until) {
    std::vector<std::string> all = t.flags;
    all.insert(all.end(), {"-###", until, "-x", "c++", "/dev/null", "-o", "/dev/null"});
    return asked(all).output;
  };
  const std::string compile = dry("-S");
  t.identity = version.output + compile;
  if (!t.clang && !front.empty() && !assembler.empty()) {
    t.front = detail::dry_command(compile, "cc1plus", front, "/dev/null");
    t.assembler = detail::dry_command(dry("-c"), "as", assembler, "");
    if (t.front.empty() || t.assembler.empty()) t.front.clear(), t.assembler.clear();
  }
  for (const fs::path& program : programs) t.identity += detail::file_identity(program);
  for (const std::string& library : t.all_libraries) t.identity += detail::file_identity(library);
  return t;
}

}  // namespace kevin::eval

#endif  // KEVIN_EVAL_TOOLCHAIN_HPP
