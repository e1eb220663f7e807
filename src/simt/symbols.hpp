// Source lines of code addresses, from the program's debug information by way of binutils' addr2line.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gyre_simt {
namespace detail {

struct symbol {
  std::string function, file;
  unsigned line = 0;
};

// "void k<3>(float*)" -> "k<3>"
inline std::string without_types(std::string function) {
  if (!function.empty() && function.back() == ')') {
    int depth = 0;
    for (std::size_t i = function.size(); i-- > 0;) {
      depth += function[i] == ')' ? 1 : function[i] == '(' ? -1 : 0;
      if (depth == 0) {
        function.resize(i);
        break;
      }
    }
  }
  if (function.starts_with("void ")) function.erase(0, 5);
  return function;
}

// The file that `code` was loaded from, and its address there.
inline std::pair<std::string, std::uintptr_t> module_of(const void* code) {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(code, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  std::string file = map->l_name;
  if (file.empty()) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    file.assign(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  }
  return {file, reinterpret_cast<std::uintptr_t>(code) - map->l_addr};
}

// What addr2line prints after one address: pairs of lines, function and file:line, the innermost of inlined ones first.
inline symbol first_outside_of_interpreter(const std::vector<std::string>& lines) {
  symbol found;
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    found.function = without_types(lines[i]);
    const std::string& place = lines[i + 1];
    const std::size_t colon = place.rfind(':');
    if (colon == std::string::npos || place.starts_with("??")) continue;
    found.file = place.substr(0, colon);
    found.line = static_cast<unsigned>(std::strtoul(place.c_str() + colon + 1, nullptr, 10));
    if (found.file.find("/gyre/simt/") == std::string::npos) break;
  }
  if (found.function == "??") found.function.clear();
  return found;
}

// Symbols of code addresses. Where addr2line or debug information is missing they stay empty.
inline std::map<const void*, symbol> symbols_of(const std::vector<const void*>& codes) {
  std::map<std::string, std::vector<std::pair<const void*, std::uintptr_t>>> modules;
  for (const void* code : codes) {
    const auto [file, address] = module_of(code);
    if (!file.empty() && file.find('\'') == std::string::npos) modules[file].emplace_back(code, address);
  }
  std::map<const void*, symbol> found;
  for (const auto& [file, addresses] : modules) {
    std::ostringstream command;
    command << "addr2line -a -f -C -i -e '" << file << '\'' << std::hex;
    for (const auto& [code, address] : addresses) command << " 0x" << address;
    command << " 2>/dev/null";
    FILE* const pipe = popen(command.str().c_str(), "r");
    if (pipe == nullptr) continue;
    std::string text;
    char piece[4096];
    for (std::size_t n = 0; (n = fread(piece, 1, sizeof(piece), pipe)) > 0;) text.append(piece, n);
    pclose(pipe);

    std::istringstream in(text);
    std::string line;
    std::vector<std::vector<std::string>> answers;
    while (std::getline(in, line)) {
      if (line.starts_with("0x"))
        answers.emplace_back();
      else if (!answers.empty())
        answers.back().push_back(line);
    }
    for (std::size_t i = 0; i < answers.size() && i < addresses.size(); ++i)
      found[addresses[i].first] = first_outside_of_interpreter(answers[i]);
  }
  return found;
}

}  // namespace detail
}  // namespace gyre_simt
