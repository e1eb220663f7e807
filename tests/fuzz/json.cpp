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

/// Every accessor answers or throws gyre::error.
void visit(const gyre::json& value) {
  for (const auto access : {+[](const gyre::json& v) { v.boolean("input"); }, +[](const gyre::json& v) { v.string("input"); },
                            +[](const gyre::json& v) { v.int64("input"); }, +[](const gyre::json& v) { v.uint64("input"); },
                            +[](const gyre::json& v) { v.real("input"); }}) {
    try {
      access(value);
    } catch (const gyre::error& refusal) {
      promise(std::strstr(refusal.what(), "input: ") == refusal.what());
    }
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
    const std::string written = gyre::write_json(value);
    promise(gyre::parse_json(written, "written") == value);
    promise(gyre::parse_json(gyre::write_json(value, 2), "indented") == value);
  } catch (const gyre::error& refusal) {
    promise(std::strstr(refusal.what(), "input: ") == refusal.what());
  }
  return 0;
}
