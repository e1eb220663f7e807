// JSON: what RFC 8259 allows is read exactly, what it does not is refused with the place and what was expected there.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gyre/io/json.hpp>

#include "io/support.hpp"

using gyre::json;
using gyre::json_field;
using gyre::json_kind;
using gyre::parse_json;
using gyre::write_json;
using gyre_test::error_text;

namespace {

std::string refusal(std::string_view text, const gyre::json_limits& limits = {}) {
  return error_text([&] { parse_json(text, "f.json", limits); });
}

std::string text_of(std::string_view json_string) { return parse_json(json_string, "f.json").string(); }

}  // namespace

TEST_CASE("JSON: every grammar production is read", "[json]") {
  CHECK(parse_json("null", "f").kind() == json_kind::null);
  CHECK(parse_json("true", "f").boolean());
  CHECK_FALSE(parse_json("false", "f").boolean());
  CHECK(parse_json(" \t\r\n[ ] \n", "f") == json::array());
  CHECK(parse_json("{ }", "f") == json::object());
  for (const char* number :
       {"0", "-0", "7", "-12", "10.25", "-0.5", "1e5", "1E+5", "2.5e-3", "0e0", "123456789012345678901234567890"})
    CHECK(parse_json(number, "f").number_text() == number);
  const json tree = parse_json(R"({"a":[1,{"b":[]},"x"],"":{"c":null}})", "f");
  CHECK(tree.keys() == std::vector<std::string>{"a", ""});
  CHECK(tree.find("a")->values()[1].find("b")->values().empty());
  CHECK(tree.find("")->find("c")->kind() == json_kind::null);
  CHECK(tree.find("z") == nullptr);
  CHECK(write_json(tree) == R"({"a":[1,{"b":[]},"x"],"":{"c":null}})");
}

TEST_CASE("JSON: strings give the text they mean", "[json]") {
  CHECK(text_of(R"("")") == "");
  CHECK(text_of(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(text_of(R"("A\u0000B")") == std::string("A\0B", 3));
  CHECK(text_of(R"("\u00e4\u20AC\uD83D\uDE00\uFFFF")") == "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xEF\xBF\xBF");
  CHECK(text_of(R"("\uD800\uDC00\uDBFF\uDFFF")") == "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
  CHECK(text_of("\"\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"") ==
        "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xF0\x90\x80\x80\xF4\x8F\xBF\xBF");
}

TEST_CASE("JSON: what the grammar does not allow is refused, with source, offset, expectation and find", "[json]") {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"", "byte 0: expected a value, found the end of the text"},
      {"  ", "byte 2: expected a value, found the end of the text"},
      {"\xEF\xBB\xBF[]", "byte 0: expected a value, found '\\xef'"},
      {"nul", "byte 0: expected null, found 'n'"},
      {"nulL", "byte 0: expected null, found 'n'"},
      {"tru", "byte 0: expected true, found 't'"},
      {"falsy", "byte 0: expected false, found 'f'"},
      {"NaN", "byte 0: expected a value, found 'N'"},
      {"Infinity", "byte 0: expected a value, found 'I'"},
      {"nullx", "byte 4: expected nothing after the value, found 'x'"},
      {"[] []", "byte 3: expected nothing after the value, found '['"},
      {"01", "byte 1: expected nothing after the value, found '1'"},
      {"-", "byte 1: expected a digit, found the end of the text"},
      {"-x", "byte 1: expected a digit, found 'x'"},
      {"+1", "byte 0: expected a value, found '+'"},
      {".5", "byte 0: expected a value, found '.'"},
      {"1.", "byte 2: expected a digit after the point, found the end of the text"},
      {"1.e3", "byte 2: expected a digit after the point, found 'e'"},
      {"1e", "byte 2: expected a digit of the exponent, found the end of the text"},
      {"1e+-2", "byte 3: expected a digit of the exponent, found '-'"},
      {"0x10", "byte 1: expected nothing after the value, found 'x'"},
      {"[", "byte 1: expected a value, found the end of the text"},
      {"[1", "byte 2: expected ',' or ']', found the end of the text"},
      {"[1 2]", "byte 3: expected ',' or ']', found '2'"},
      {"[1,]", "byte 3: expected a value, found ']'"},
      {"[,1]", "byte 1: expected a value, found ','"},
      {"[1}", "byte 2: expected ',' or ']', found '}'"},
      {"]", "byte 0: expected a value, found ']'"},
      {"[[]", "byte 3: expected ',' or ']', found the end of the text"},
      {"{", "byte 1: expected a key in quotes, found the end of the text"},
      {"{a:1}", "byte 1: expected a key in quotes, found 'a'"},
      {"{1:1}", "byte 1: expected a key in quotes, found '1'"},
      {R"({"a"})", "byte 4: expected ':', found '}'"},
      {R"({"a":})", "byte 5: expected a value, found '}'"},
      {R"({"a":1)", "byte 6: expected ',' or '}', found the end of the text"},
      {R"({"a":1,})", "byte 7: expected a key in quotes, found '}'"},
      {R"({"a":1 "b":2})", "byte 7: expected ',' or '}', found '\"'"},
      {R"({"a":1]})", "byte 6: expected ',' or '}', found ']'"},
      {"[1] // a comment", "byte 4: expected nothing after the value, found '/'"},
      {"'a'", "byte 0: expected a value, found '''"},
      {"\"a", "byte 2: expected the string's closing quote, found the end of the text"},
      {"\"\n\"", "byte 1: expected valid UTF-8, control characters escaped, found '\\x0a'"},
      {std::string_view("\"\0\"", 3), "byte 1: expected valid UTF-8, control characters escaped, found '\\x00'"},
      {R"("\x41")", "byte 2: expected one of \" \\ / b f n r t u after the backslash, found 'x'"},
      {"\"\\", "byte 2: expected one of \" \\ / b f n r t u after the backslash, found the end of the text"},
      {R"("\u12")", "byte 5: expected four hexadecimal digits after \\u, found '\"'"},
      {R"("\u12G4")", "byte 5: expected four hexadecimal digits after \\u, found 'G'"},
      {R"("\u123)", "byte 6: expected four hexadecimal digits after \\u, found the end of the text"},
      {R"("\uDC00")", "byte 7: expected a Unicode character, found a surrogate escape with no high surrogate before it"},
      {R"("\uD800")", "byte 7: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {R"("\uD800x")", "byte 7: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {R"("\uD800\n")", "byte 7: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {R"("\uD800\uD800")", "byte 13: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {R"("\uD800\uE000")", "byte 13: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {R"({"k":1,"j":2,"k":3})", "byte 17: duplicate key 'k'"},
      {R"({"k":1,"\u006B":3})", "byte 16: duplicate key 'k'"},
      {R"([{"a":{"":0,"":0}}])", "byte 15: duplicate key ''"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(std::string(text));
    CHECK(refusal(text) == "f.json: " + std::string(expected));
  }
}

TEST_CASE("JSON: invalid UTF-8 is refused at the byte where it begins", "[json]") {
  for (const std::string_view bad :
       {"\x80",         "\xBF",          "\xC0\x80",         "\xC1\xBF",         "\xC2",         "\xC2x",    "\xDFx",
        "\xE0\x9F\xBF", "\xE0\x80",      "\xE1\x80x",        "\xED\xA0\x80",     "\xED\xBF\xBF", "\xEF\xBF", "\xF0\x8F\xBF\xBF",
        "\xF0\x90\x80", "\xF1\x80\x80x", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE",         "\xFF"}) {
    CAPTURE(std::string(bad));
    CHECK_THAT(refusal("[\"ab" + std::string(bad) + "\"]"),
               Catch::StartsWith("f.json: byte 4: expected valid UTF-8, control characters escaped, found '\\x"));
    CHECK_THAT(error_text([&] { write_json(json("ab" + std::string(bad))); }), Catch::EndsWith("is not valid UTF-8 at byte 2"));
  }
}

TEST_CASE("UTF-8: exactly the encodings of Unicode scalar values are characters", "[json]") {
  // Every code point encoded, then every pattern of lead and second byte with the rest plausible.
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string text;
    gyre::detail::append_utf8(text, point);
    if (gyre::utf8_character(text) != text.size() || gyre::utf8_character(text + "x") != text.size() ||
        (text.size() > 1 && gyre::utf8_character(text.substr(0, text.size() - 1)) != 0))
      FAIL("U+" << std::hex << point);
  }
  std::size_t valid = 0;
  for (unsigned a = 0; a < 256; ++a)
    for (unsigned b = 0; b < 256; ++b) {
      const char text[] = {static_cast<char>(a), static_cast<char>(b), '\x80', '\x80'};
      if (gyre::utf8_character({text, 4}) > 1) ++valid;
    }
  // Two bytes: 30 leads x 64. Three: E0 has 32 second bytes, ED 32, 14 others 64. Four: F0 48, F4 16, F1 to F3 64.
  CHECK(valid == 30 * 64 + 32 + 32 + 14 * 64 + 48 + 16 + 3 * 64);
  CHECK(gyre::utf8_valid_prefix("ab\xC3\xA4\xFFz") == 4);
}

TEST_CASE("JSON: limits on size, depth and number of values hold exactly", "[json]") {
  CHECK(refusal("[1,2,3]", {.bytes = 7}) == "no error");
  CHECK(refusal("[1,2,3]", {.bytes = 6}) == "f.json: a JSON text of 7 bytes is longer than the limit of 6");
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  CHECK(refusal(nested(64)) == "no error");
  CHECK(refusal(nested(65)) == "f.json: byte 64: arrays and objects are nested deeper than the limit of 64");
  CHECK(refusal(R"({"a":{"b":[]}})", {.depth = 3}) == "no error");
  CHECK(refusal(R"({"a":{"b":[]}})", {.depth = 2}) ==
        "f.json: byte 10: arrays and objects are nested deeper than the limit of 2");
  CHECK(refusal("[[],[],[]]", {.depth = 2}) == "no error");
  CHECK(refusal(std::string(1u << 20, '[')) == "f.json: byte 64: arrays and objects are nested deeper than the limit of 64");
  CHECK(refusal("[1,2,3]", {.values = 4}) == "no error");
  CHECK(refusal("[1,2,3]", {.values = 3}) == "f.json: byte 5: more values than the limit of 3");
}

TEST_CASE("JSON: numbers are read exactly or refused", "[json]") {
  const auto number = [](std::string_view text) { return parse_json(text, "f"); };
  CHECK(number("9223372036854775807").int64() == (std::numeric_limits<std::int64_t>::max)());
  CHECK(number("-9223372036854775808").int64() == (std::numeric_limits<std::int64_t>::min)());
  CHECK(number("18446744073709551615").uint64() == (std::numeric_limits<std::uint64_t>::max)());
  CHECK(number("-0").int64() == 0);
  const std::string range = "from -9223372036854775808 to 9223372036854775807";
  CHECK(error_text([&] { number("9223372036854775808").int64("a.json: n"); }) ==
        "a.json: n: expected an integer " + range + ", found 9223372036854775808");
  CHECK(error_text([&] { number("-9223372036854775809").int64(); }) != "no error");
  CHECK(error_text([&] { number("1.0").int64("w"); }) == "w: expected an integer " + range + ", found 1.0");
  CHECK(error_text([&] { number("1e3").int64(); }) != "no error");
  CHECK(error_text([&] { number("-1").uint64("w"); }) == "w: expected an integer from 0 to 18446744073709551615, found -1");
  CHECK(error_text([&] { number("18446744073709551616").uint64(); }) != "no error");
  CHECK(number("0.1").real() == 0.1);
  CHECK(std::signbit(number("-0").real()));
  CHECK(number("1.7976931348623157e308").real() == (std::numeric_limits<double>::max)());
  CHECK(number("4.9406564584124654e-324").real() == std::numeric_limits<double>::denorm_min());
  CHECK(number("9007199254740993").real() == 9007199254740992.0);  // ties to even
  CHECK(error_text([&] { number("1e309").real("w"); }) == "w: the number 1e309 is outside the range of a double");
  CHECK(error_text([&] { number("-1e999").real(); }) != "no error");
  CHECK(error_text([&] { number("1e-400").real("w"); }) == "w: the number 1e-400 is outside the range of a double");
  CHECK(json::number("1e400").number_text() == "1e400");
  CHECK(error_text([&] { json::number("1e"); }) != "no error");
  CHECK(error_text([&] { json::number("1 2"); }) != "no error");
  CHECK(error_text([&] { json::number("[]"); }) == "json::number: byte 0: expected a number, found '['");
}

TEST_CASE("JSON: doubles and 64-bit integers survive writing and reading bit for bit", "[json]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t bits = random();
    const double value = std::bit_cast<double>(bits);
    if (std::isfinite(value)) {
      const std::string text = write_json(json(value));
      if (std::bit_cast<std::uint64_t>(parse_json(text, "f").real()) != bits) FAIL(text);
      if (text.find_first_of(".e") == std::string::npos) FAIL(text << " reads as an integer elsewhere");
    }
    const auto integer = static_cast<std::int64_t>(bits >> (i % 64));
    if (parse_json(write_json(json(bits)), "f").uint64() != bits) FAIL(bits);
    if (parse_json(write_json(json(integer)), "f").int64() != integer) FAIL(integer);
  }
  CHECK(write_json(json(1.0)) == "1.0");
  CHECK(write_json(json(-0.0)) == "-0.0");
  CHECK(write_json(json(0.1)) == "0.1");
  CHECK(write_json(json(1e300)) == "1e+300");
  CHECK(static_cast<float>(parse_json(write_json(json(4e-4f)), "f").real()) == 4e-4f);
  CHECK(error_text([] { return json(std::numeric_limits<double>::infinity()); }) ==
        "json: inf is not finite, and JSON has no text for it");
  CHECK(error_text([] { return json(std::nan("")); }) != "no error");
}

namespace {

json random_value(std::mt19937_64& random, int depth) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto random_text = [&] {
    std::string text;
    for (std::uint64_t i = below(8); i > 0; --i) {
      const std::uint32_t most[] = {0x20, 0x80, 0x800, 0x10000, 0x110000};
      const auto point = static_cast<std::uint32_t>(below(most[below(5)]));
      if (point < 0xD800 || point > 0xDFFF) gyre::detail::append_utf8(text, point);
    }
    return text;
  };
  switch (below(depth > 0 ? 7 : 5)) {
    case 0:
      return {};
    case 1:
      return below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(random());
    case 3:
      return static_cast<double>(random()) * 0x1p-70;
    case 4:
      return random_text();
    case 5: {
      json out = json::array();
      for (std::uint64_t i = below(5); i > 0; --i) out.push_back(random_value(random, depth - 1));
      return out;
    }
    default: {
      json out = json::object();
      for (std::uint64_t i = below(5); i > 0; --i) out.set(random_text(), random_value(random, depth - 1));
      return out;
    }
  }
}

}  // namespace

TEST_CASE("JSON: random values survive writing and reading, in both layouts", "[json]") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    const json value = random_value(random, 5);
    const std::string text = write_json(value);
    CAPTURE(text);
    REQUIRE(parse_json(text, "f") == value);
    REQUIRE(parse_json(write_json(value, 2), "f") == value);
    REQUIRE(write_json(parse_json(text, "f")) == text);
  }
}

TEST_CASE("JSON: the written text is fixed, members keep their order", "[json]") {
  json value = json::object();
  value.set("b", 1);
  value.set("a", json::array({true, nullptr, "x\x01\n\"\\/\x7F\xC3\xA4"}));
  value.set("c", json::object());
  value.set("b", 2u);
  CHECK(write_json(value) == "{\"b\":2,\"a\":[true,null,\"x\\u0001\\n\\\"\\\\/\x7F\xC3\xA4\"],\"c\":{}}");
  CHECK(write_json(json::array({1, json::array({2})}), 2) == "[\n  1,\n  [\n    2\n  ]\n]");
  CHECK(write_json(parse_json(R"({"a":{"b":1}})", "f"), 1) == "{\n \"a\": {\n  \"b\": 1\n }\n}");
}

TEST_CASE("JSON: a wrong or missing member is named with file and path", "[json]") {
  const json value = parse_json(R"({"model":{"width":"wide","layers":[1,{"r":2.5}]},"on":true})", "config.json");
  const json_field root(value, "config.json");
  CHECK(root["on"].boolean());
  CHECK(root["model"]["layers"].size() == 2);
  CHECK(root["model"]["layers"][1]["r"].real() == 2.5);
  CHECK(root["model"]["width"].string() == "wide");
  CHECK(root["model"]["layers"][0].uint64() == 1);
  CHECK(root.contains("on"));
  CHECK_FALSE(root.contains("off"));
  CHECK(error_text([&] { root["model"]["width"].int64(); }) == "config.json: model.width: expected a number, found a string");
  CHECK(error_text([&] { root["model"]["layers"][1]["r"].string(); }) ==
        "config.json: model.layers[1].r: expected a string, found a number");
  CHECK(error_text([&] { root["model"]["depth"]; }) == "config.json: model: the member 'depth' is missing");
  CHECK(error_text([&] { root["off"]; }) == "config.json: the member 'off' is missing");
  CHECK(error_text([&] { root["on"]["x"]; }) == "config.json: on: expected an object, found true or false");
  CHECK(error_text([&] { root["model"]["layers"][2]; }) == "config.json: model.layers: element 2 of an array of 2");
  CHECK(error_text([&] { root["on"][0]; }) == "config.json: on: expected an array, found true or false");
  CHECK(error_text([&] { root["on"].size(); }) == "config.json: on: expected an array or an object, found true or false");
  CHECK(error_text([&] { root["model"].boolean(); }) == "config.json: model: expected true or false, found an object");
  json list = json::array();
  CHECK(error_text([&] { list.set("a", 1); }) == "json::set: expected an object, found an array");
  CHECK(error_text([&] { json().push_back(1); }) == "json::push_back: expected an array, found null");
}

TEST_CASE("JSON: names in messages are cut and cannot steer a terminal", "[json]") {
  using gyre::detail::in_quotes;
  CHECK(in_quotes("a\x1B[31m\n\xFF\x7F") == "'a\\x1b[31m\\x0a\\xff\\x7f'");
  CHECK(in_quotes("\xC3\xA4") == "'\xC3\xA4'");
  CHECK(in_quotes("\xC2\x9B") == "'\\xc2\\x9b'");  // U+009B is a control character: CSI
  CHECK(in_quotes(std::string(81, 'a')) == "'" + std::string(80, 'a') + "...'");
  CHECK(in_quotes(std::string(80, 'a')) == "'" + std::string(80, 'a') + "'");
}
