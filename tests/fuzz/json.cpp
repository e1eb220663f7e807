// Any text is either refused with gyre::error or survives being written and read again.
//
// covers: include/gyre/io/json_scanner.hpp 90
// covers: include/gyre/io/json_parser.hpp 90
// covers: include/gyre/io/json_writer.hpp 90
// covers: include/gyre/io/utf8.hpp 90
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include <gyre/io/json.hpp>

namespace {

void promise(bool kept) {
  if (!kept) std::abort();
}

/// An accessor answers or throws gyre::error.
template <class Access>
void answers(Access&& access) {
  try {
    access();
  } catch (const gyre::error& refusal) {
    promise(std::strstr(refusal.what(), "input: ") == refusal.what());
  }
}

/// Numbers are read as what they can be, members are found.
void visit(const gyre::json& value) {
  if (value.kind() == gyre::json_kind::number) {
    const bool whole = value.number_text().find_first_of(".eE") == std::string::npos && value.number_text().size() < 19;
    if (whole && value.number_text()[0] != '-') promise(static_cast<std::uint64_t>(value.int64()) == value.uint64());
    if (!whole) answers([&] { value.int64("input"); });
    answers([&] { value.real("input"); });
  }
  if (value.kind() != gyre::json_kind::array && value.kind() != gyre::json_kind::object) return;
  for (std::size_t i = 0; i < value.values().size(); ++i) {
    if (value.kind() == gyre::json_kind::object) promise(value.find(value.keys()[i]) == &value.values()[i]);  // no duplicates
    visit(value.values()[i]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const gyre::json value = gyre::parse_json(text, "input", {.bytes = 4096, .depth = 16, .values = 500});
    promise(gyre::utf8_valid_prefix(text) == text.size());
    visit(value);
    answers([&] { value.string("input"); });
    answers([&] { value.boolean("input"); });
    const std::string written = gyre::write_json(value);
    promise(gyre::parse_json(written, "written") == value);
    promise(gyre::parse_json(gyre::write_json(value, 2), "indented") == value);
  } catch (const gyre::error& refusal) {
    promise(std::strstr(refusal.what(), "input: ") == refusal.what());
  }
  return 0;
}
