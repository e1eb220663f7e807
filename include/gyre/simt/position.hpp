// Where in the source a kernel calls the interpreter.
#pragma once

#include <cstddef>
#if !defined(__clang__)
#include <source_location>
#endif

// For functions of the interpreter that kernels enter: they must not be instrumented like the kernels themselves.
#define GYRE_SIMT_ENGINE __attribute__((no_sanitize("thread", "address", "undefined")))

namespace gyre_simt {

/// A place in the source. As a default argument it is the place of the call, so a barrier is known by where it is written: a
/// compiler that duplicates or merges code does not change it.
struct position {
  const char* file;
  unsigned line, column;

#if defined(__clang__)
  constexpr position(const char* from = __builtin_FILE(), unsigned at_line = __builtin_LINE(),
                     unsigned at_column = __builtin_COLUMN())
      : file(from), line(at_line), column(at_column) {}
#else
  constexpr position(std::source_location at = std::source_location::current())
      : file(at.file_name()), line(at.line()), column(at.column()) {}
#endif
  friend constexpr bool operator==(const position& a, const position& b) {
    if (a.line != b.line || a.column != b.column) return false;
    // Names of files are compared by their letters: each translation unit may have a copy of its own.
    std::size_t i = 0;
    for (; a.file != b.file && a.file[i] != 0 && a.file[i] == b.file[i]; ++i) {
    }
    return a.file == b.file || a.file[i] == b.file[i];
  }
};

}  // namespace gyre_simt
