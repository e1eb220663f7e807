#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace gyre_test {

/// A command line as a program gets it, from text without quotes.
inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace gyre_test
