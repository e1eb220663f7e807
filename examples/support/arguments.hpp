// Command lines of the example programs: options are declared where they are read, and --help follows from that.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gyre/core/error.hpp>

namespace examples {

/// "train" of "./build/train".
inline std::string program_name(int count, const char* const* values) {
  const std::string path = count > 0 ? values[0] : "program";
  return path.substr(path.find_last_of('/') + 1);
}

/// `--name value`, `--name=value` and `--flag`. Read every option, then call ready(): it prints the help if asked, and refuses
/// what nobody read.
class arguments {
 public:
  arguments(int count, const char* const* values, std::string purpose) : purpose_(std::move(purpose)) {
    for (int i = 1; i < count; ++i) given_.emplace_back(values[i]);
    program_ = program_name(count, values);
  }

  bool flag(std::string_view name, std::string_view help) {
    help_.push_back({"--" + std::string(name), std::string(help)});
    return std::erase(given_, "--" + std::string(name)) > 0;
  }
  std::string text(std::string_view name, std::string fallback, std::string_view help) {
    help_.push_back(
        {"--" + std::string(name) + " TEXT", std::string(help) + (fallback.empty() ? "" : " (default " + fallback + ")")});
    return last(name).value_or(fallback);
  }
  /// Nothing unless the option is given: then it may be empty.
  std::optional<std::string> maybe_text(std::string_view name, std::string_view help) {
    help_.push_back({"--" + std::string(name) + " TEXT", std::string(help)});
    return last(name);
  }
  /// Whether an option stands on the command line; ask before it is read.
  bool has(std::string_view name) const {
    const std::string option = "--" + std::string(name);
    return std::any_of(given_.begin(), given_.end(),
                       [&](const std::string& word) { return word == option || word.starts_with(option + "="); });
  }
  /// All values of an option that may come more than once.
  std::vector<std::string> texts(std::string_view name, std::string_view help) {
    help_.push_back({"--" + std::string(name) + " TEXT", std::string(help) + " (may be repeated)"});
    std::vector<std::string> all;
    while (auto value = take(name)) all.push_back(*value);
    return all;
  }
  template <class Number>
  Number number(std::string_view name, Number fallback, std::string_view help) {
    std::ostringstream shown;
    shown << fallback;
    help_.push_back({"--" + std::string(name) + " N", std::string(help) + " (default " + shown.str() + ")"});
    const auto value = last(name);
    if (!value) return fallback;
    Number parsed{};
    const char* end = value->data() + value->size();
    const auto [stop, problem] = std::from_chars(value->data(), end, parsed);
    gyre::require(problem == std::errc{} && stop == end, program_, ": --", name, " wants a number, not '", *value, "'");
    return parsed;
  }

  /// One of a few words. An empty one stands for the absence of the option.
  std::string choice(std::string_view name, const std::vector<std::string>& words, const std::string& fallback,
                     std::string_view help) {
    std::string listed;
    for (const std::string& word : words)
      if (!word.empty()) listed += (listed.empty() ? "" : ", ") + word;
    help_.push_back({"--" + std::string(name) + " WORD",
                     std::string(help) + ": " + listed + (fallback.empty() ? "" : " (default " + fallback + ")")});
    const std::string value = last(name).value_or(fallback);
    for (const std::string& word : words)
      if (word == value) return value;
    gyre::fail(program_, ": --", name, " is one of ", listed, ", not '", value, "'");
  }
  /// A line between options in the help.
  void heading(std::string_view text) { help_.push_back({"", std::string(text)}); }

  /// False if only the help was asked for, which it then has printed.
  bool ready() {
    if (flag("help", "this text")) {
      std::cout << purpose_ << "\n\n" << program_ << " [options]\n";
      for (const auto& [option, help] : help_) std::cout << (option.empty() ? "\n" + help + "\n" : help_lines(option, help));
      return false;
    }
    gyre::require(given_.empty(), program_, ": unknown option or value '", given_.empty() ? "" : given_.front(), "'; see ",
                  program_, " --help");
    return true;
  }

 private:
  /// "  --option       what it is", broken between words.
  static std::string help_lines(const std::string& option, const std::string& help) {
    constexpr std::size_t column = 29, most = 110;
    std::string text, line = "  " + option;
    std::istringstream words(help);
    line.resize((std::max)(line.size(), column), ' ');
    for (std::string word; words >> word;) {
      if (line.size() + 1 + word.size() > most) {
        text += line + '\n';
        line.assign(column, ' ');
      }
      line += ' ' + word;
    }
    return text + line + '\n';
  }
  /// The value of the last occurrence: a command line can be lengthened to change it.
  std::optional<std::string> last(std::string_view name) {
    std::optional<std::string> value;
    while (auto next = take(name)) value = std::move(next);
    return value;
  }
  std::optional<std::string> take(std::string_view name) {
    const std::string option = "--" + std::string(name);
    for (auto i = given_.begin(); i != given_.end(); ++i) {
      if (i->starts_with(option + "=")) {
        std::string value = i->substr(option.size() + 1);
        given_.erase(i);
        return value;
      }
      if (*i != option) continue;
      gyre::require(i + 1 != given_.end(), program_, ": ", option, " wants a value");
      std::string value = *(i + 1);
      given_.erase(i, i + 2);
      return value;
    }
    return std::nullopt;
  }

  struct line {
    std::string option, help;
  };
  std::string program_, purpose_;
  std::vector<std::string> given_;
  std::vector<line> help_;
};

/// Runs a program's body; an error becomes one line and exit status 1. What it printed must have arrived.
template <class Body>
int guarded(int count, const char* const* values, Body&& body) {
  const std::string program = program_name(count, values);
  const auto no_memory = [&] {
    std::cerr << "error: not enough memory for " << program << "; use fewer rows, a shorter length, fewer steps\n";
    return 1;
  };
  try {
    const int status = body();
    gyre::require(static_cast<bool>(std::cout.flush()), program, ": cannot write to standard output; is the disk full?");
    return status;
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {  // of a container: more than there can be memory
    return no_memory();
  } catch (const std::system_error& e) {
    std::cerr << "error: " << program << ": " << e.what() << '\n';
  } catch (const std::exception& e) {
    std::cerr << "error: " << e.what() << '\n';
  }
  return 1;
}

}  // namespace examples
