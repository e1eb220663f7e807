// safetensors: every public rule of the format as a case that loads or gives one clear error.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/safetensors.hpp>

#include "io/safetensors_files.hpp"
#include "io/support.hpp"

using gyre::safetensors_reader;
using gyre_test::bytes_of;
using gyre_test::error_text;
using gyre_test::file_of;
using gyre_test::object;
using gyre_test::scratch_folder;
using gyre_test::tensor;

namespace {

/// One error for one file, the same from memory and from the disk.
std::string refusal(const std::string& bytes) {
  const std::string text = error_text([&] { safetensors_reader(bytes_of(bytes), "f"); });
  const scratch_folder folder;
  gyre::write_file(folder / "f", bytes);
  const std::string path = (folder / "f").string(), from_disk = error_text([&] { safetensors_reader{folder / "f"}; });
  CHECK(from_disk == (text == "no error" ? text : path + text.substr(1)));
  return text;
}

struct hostile {
  std::string what, bytes, expected;  // expected: after "f: "; empty: it loads
};

const std::string one = object({tensor("a", "U8", "[4]", 0, 4)});  // 53 bytes

std::vector<hostile> sizes_and_json() {
  return {
      {"empty file", "", "0 bytes are too few for a safetensors file, which begins with a header size of 8"},
      {"seven bytes", std::string(7, '\0'), "7 bytes are too few for a safetensors file, which begins with a header size of 8"},
      {"header of no bytes", file_of("", 0), "a header of 0 bytes is too small, '{}' is the least"},
      {"header of one byte", file_of("{", 0), "a header of 1 bytes is too small, '{}' is the least"},
      {"header beyond the format's limit", file_of("{}", 0, 100'000'001),
       "a header of 100000001 bytes is larger than the format's limit of 100000000"},
      {"header size of all ones", std::string(8, '\xFF') + "{}",
       "a header of 18446744073709551615 bytes is larger than the format's limit of 100000000"},
      {"header at the limit, not in the file", file_of("{}", 0, 100'000'000),
       "a header of 100000000 bytes does not fit in a file of 10; the file is truncated or no safetensors file"},
      {"header one byte longer than the file", file_of(one, 0, 54),
       "a header of 54 bytes does not fit in a file of 61; the file is truncated or no safetensors file"},
      {"least file", file_of("{}", 0), ""},
      {"header cut short", file_of(one, 4, 52), "byte 60: expected ',' or '}', found the end of the text"},
      {"leading space", file_of(" " + one, 4), "byte 8: the header must begin with '{'"},
      {"an array", file_of("[]", 0), "byte 8: the header must begin with '{'"},
      {"byte order mark", file_of("\xEF\xBB\xBF" + one, 4), "byte 8: the header must begin with '{'"},
      {"padded with spaces", file_of(one + "     ", 4), ""},
      {"padded with null bytes", file_of(one + std::string(3, '\0'), 4),
       "byte 61: expected nothing after the value, found '\\x00'"},
      {"two values", file_of(one + "{}", 4), "byte 61: expected nothing after the value, found '{'"},
      {"not JSON", file_of("{a}", 0), "byte 9: expected a key in quotes, found 'a'"},
      {"not UTF-8", file_of("{\"\xFF\":1}", 0), "byte 10: expected valid UTF-8, control characters escaped, found '\\xff'"},
      {"lone surrogate", file_of("{\"\\ud800\":1}", 0),
       "byte 16: expected a Unicode character, found a surrogate escape with no low surrogate after it"},
      {"deep nesting", file_of("{\"a\":{\"shape\":[" + std::string(100'000, '['), 0), "byte 23: expected a number, found '['"},
      {"null byte in a name", file_of(object({tensor("a\\u0000b", "U8", "[4]", 0, 4)}), 4),
       "byte 20: the text 'a\\x00b' holds a null byte"},
  };
}

std::vector<hostile> entries() {
  const auto entry = [](const std::string& fields) { return file_of("{\"a\":{" + fields + "}}", 4); };
  const std::string type = "\"dtype\":\"U8\"", shape = "\"shape\":[4]", place = "\"data_offsets\":[0,4]";
  const auto with_shape = [&](const std::string& text) { return entry(type + ",\"shape\":" + text + "," + place); };
  const auto with_place = [&](const std::string& text) { return entry(type + "," + shape + ",\"data_offsets\":" + text); };
  const std::string range = "expected an integer from 0 to 9223372036854775807, found ";
  return {
      {"fields in any order", entry(place + "," + type + "," + shape), ""},
      {"white space within", entry(" \n" + place + "\t,\r" + type + " , " + shape + " "), ""},
      {"duplicate tensor", file_of(object({tensor("a", "U8", "[4]", 0, 4), tensor("a", "U8", "[4]", 4, 8)}), 8),
       "duplicate key 'a'"},
      {"duplicate tensor by an escape",
       file_of(object({tensor("a", "U8", "[4]", 0, 4), tensor("\\u0061", "U8", "[4]", 0, 4)}), 4), "duplicate key 'a'"},
      {"duplicate field", entry(type + "," + shape + "," + place + "," + shape),
       "byte 68: duplicate key 'shape' of tensor 'a'"},
      {"duplicate dtype", entry(type + "," + type + "," + shape + "," + place), "byte 35: duplicate key 'dtype' of tensor 'a'"},
      {"duplicate offsets", entry(place + "," + place), "byte 50: duplicate key 'data_offsets' of tensor 'a'"},
      {"no dtype", entry(shape + "," + place), "byte 47: tensor 'a' has no dtype"},
      {"no shape", entry(type + "," + place), "byte 48: tensor 'a' has no shape"},
      {"no offsets", entry(type + "," + shape), "byte 39: tensor 'a' has no data_offsets"},
      {"empty entry", entry(""), "byte 15: tensor 'a' has no dtype"},
      {"unknown field", entry(type + "," + shape + "," + place + ",\"x\":1"), "byte 64: tensor 'a' has the unknown field 'x'"},
      {"entry no object", file_of("{\"a\":[]}", 0), "byte 13: expected an object, found '['"},
      {"dtype no string", entry("\"dtype\":8," + shape + "," + place), "byte 22: expected a string, found '8'"},
      {"wrong dtype", entry("\"dtype\":\"F33\"," + shape + "," + place), "byte 27: tensor 'a' has the unknown dtype 'F33'"},
      {"dtype in small letters", entry("\"dtype\":\"u8\"," + shape + "," + place),
       "byte 26: tensor 'a' has the unknown dtype 'u8'"},
      {"shape no array", with_shape("4"), "byte 35: expected an array, found '4'"},
      {"dimension no number", with_shape("[\"4\"]"), "byte 36: expected a number, found '\"'"},
      {"negative dimension", with_shape("[-4]"), "byte 36: " + range + "-4"},
      {"negative zero", with_shape("[-0]"), "byte 36: " + range + "-0"},
      {"fractional dimension", with_shape("[4.0]"), "byte 36: " + range + "4.0"},
      {"dimension with exponent", with_shape("[4e0]"), "byte 36: " + range + "4e0"},
      {"dimension of 2^63", with_shape("[9223372036854775808]"), "byte 36: " + range + "9223372036854775808"},
      {"dimension of 2^64", with_shape("[18446744073709551616]"), "byte 36: " + range + "18446744073709551616"},
      {"one offset", with_place("[0]"), "byte 57: data_offsets of tensor 'a' must be two numbers"},
      {"no offset", with_place("[]"), "byte 56: data_offsets of tensor 'a' must be two numbers"},
      {"three offsets", with_place("[0,4,4]"), "byte 59: data_offsets of tensor 'a' must be two numbers"},
      {"negative offset", with_place("[-1,3]"), "byte 55: " + range + "-1"},
      {"offset of 2^64", with_place("[0,18446744073709551616]"), "byte 57: " + range + "18446744073709551616"},
      {"offsets no array", with_place("4"), "byte 54: expected an array, found '4'"},
  };
}

std::vector<hostile> places() {
  const auto file = [](const std::vector<std::string>& tensors, std::size_t data) { return file_of(object(tensors), data); };
  const std::string product = " takes more bits than a 63-bit number can count";
  return {
      {"begin after end", file({tensor("a", "U8", "[4]", 4, 0)}, 4), "tensor 'a': data_offsets [4, 0] end before they begin"},
      {"too short for its shape", file({tensor("a", "F32", "[2]", 0, 4)}, 4),
       "tensor 'a': data_offsets [0, 4] give 4 bytes, F32 [2] takes 8"},
      {"too long for its shape", file({tensor("a", "U8", "[3]", 0, 4)}, 4),
       "tensor 'a': data_offsets [0, 4] give 4 bytes, U8 [3] takes 3"},
      {"too long for its dtype", file({tensor("a", "I16", "[4]", 0, 4)}, 4),
       "tensor 'a': data_offsets [0, 4] give 4 bytes, I16 [4] takes 8"},
      {"shape overflows", file({tensor("a", "U8", "[4294967296,4294967296]", 0, 4)}, 4),
       "tensor 'a': U8 [4294967296, 4294967296]" + product},
      {"shape wraps around to 4", file({tensor("a", "U8", "[4611686018427387905,4]", 0, 4)}, 4),
       "tensor 'a': U8 [4611686018427387905, 4]" + product},
      {"shape overflows before a zero", file({tensor("a", "U8", "[4294967296,4294967296,0]", 0, 0)}, 0),
       "tensor 'a': U8 [4294967296, 4294967296, 0]" + product},
      {"bytes overflow", file({tensor("a", "F64", "[1152921504606846976]", 0, 0)}, 0),
       "tensor 'a': F64 [1152921504606846976]" + product},
      {"zero before what would overflow", file({tensor("a", "U8", "[0,4294967296,4294967296]", 0, 0)}, 0), ""},
      {"many dimensions in a message", file({tensor("a", "U8", "[1,1,1,1,1,1,1,1,1,2]", 0, 1)}, 1),
       "tensor 'a': data_offsets [0, 1] give 1 bytes, U8 [1, 1, 1, 1, 1, 1, 1, 1, ... 10 dimensions] takes 2"},
      {"overlap", file({tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[4]", 3, 7)}, 7),
       "tensor 'b': data_offsets [3, 7] overlap with the tensor before, which ends at 4"},
      {"the same place twice", file({tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[4]", 0, 4)}, 4),
       "tensor 'b': data_offsets [0, 4] overlap with the tensor before, which ends at 4"},
      {"one within the other", file({tensor("a", "U8", "[8]", 0, 8), tensor("b", "U8", "[2]", 2, 4)}, 8),
       "tensor 'b': data_offsets [2, 4] overlap with the tensor before, which ends at 8"},
      {"nothing, within another", file({tensor("a", "U8", "[4]", 0, 4), tensor("b", "U8", "[0]", 2, 2)}, 4),
       "tensor 'b': data_offsets [2, 2] overlap with the tensor before, which ends at 4"},
      {"hole", file({tensor("a", "U8", "[2]", 0, 2), tensor("b", "U8", "[2]", 3, 5)}, 5),
       "tensor 'b': data_offsets [3, 5] leave a hole after byte 2"},
      {"hole at the beginning", file({tensor("a", "U8", "[2]", 1, 3)}, 3),
       "tensor 'a': data_offsets [1, 3] leave a hole after byte 0"},
      {"nothing, beyond the end", file({tensor("a", "U8", "[0]", 9, 9)}, 0),
       "tensor 'a': data_offsets [9, 9] leave a hole after byte 0"},
      {"truncated by one byte", file({tensor("a", "U8", "[4]", 0, 4)}, 3),
       "tensor 'a': data_offsets [0, 4] reach beyond the data of 3 bytes; the file is truncated"},
      {"huge and truncated", file({tensor("a", "U8", "[1152921504606846975]", 0, 1152921504606846975)}, 3),
       "tensor 'a': data_offsets [0, 1152921504606846975] reach beyond the data of 3 bytes; the file is truncated"},
      {"one trailing byte", file({tensor("a", "U8", "[4]", 0, 4)}, 5), "1 trailing bytes belong to no tensor"},
      {"data without tensors", file_of("{}", 6), "6 trailing bytes belong to no tensor"},
      {"packed elements do not fill a byte", file({tensor("a", "F4", "[3]", 0, 1)}, 1),
       "tensor 'a': F4 [3] does not fill whole bytes"},
      {"packed elements", file({tensor("a", "F4", "[4]", 0, 2), tensor("b", "F6_E2M3", "[2,2]", 2, 5)}, 5), ""},
      {"order of the header differs from the data's", file({tensor("a", "U8", "[2]", 4, 6), tensor("b", "F32", "[]", 0, 4)}, 6),
       ""},
      {"unaligned data", file({tensor("a", "U8", "[1]", 0, 1), tensor("b", "F64", "[1]", 1, 9)}, 9), ""},
      {"tensors of no bytes at every border",
       file({tensor("z", "U8", "[0]", 0, 0), tensor("b", "U8", "[2]", 0, 2), tensor("c", "F32", "[3,0]", 2, 2),
             tensor("d", "U8", "[0]", 2, 2)},
            2),
       ""},
      {"empty name", file({tensor("", "U8", "[1]", 0, 1)}, 1), ""},
  };
}

std::vector<hostile> metadata() {
  const auto file = [](const std::string& text) { return file_of("{\"__metadata__\":" + text + "," + one.substr(1), 4); };
  return {
      {"strings", file(R"({"format":"pt","":""})"), ""},
      {"none", file("{}"), ""},
      {"null", file("null"), "byte 24: expected an object, found 'n'"},
      {"a string", file("\"x\""), "byte 24: expected an object, found '\"'"},
      {"a number", file(R"({"a":1})"), "byte 29: expected a string, found '1'"},
      {"an object within", file(R"({"a":{}})"), "byte 29: expected a string, found '{'"},
      {"null within", file(R"({"a":null})"), "byte 29: expected a string, found 'n'"},
      {"duplicate key", file(R"({"a":"1","b":"2","a":"1"})"), "duplicate key 'a'"},
      {"twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "byte 42: duplicate key '__metadata__'"},
      {"null byte in a key", file(R"({"a\u0000":"1"})"), "byte 38: the text 'a\\x00' holds a null byte"},
      {"null byte in a value", file(R"({"a":"\u0000"})"), "byte 37: the text '\\x00' holds a null byte"},
  };
}

}  // namespace

TEST_CASE("safetensors: every rule of the format", "[safetensors]") {
  for (const auto& group : {sizes_and_json(), entries(), places(), metadata()})
    for (const hostile& file : group) {
      CAPTURE(file.what);
      CHECK(refusal(file.bytes) == (file.expected.empty() ? "no error" : "f: " + file.expected));
    }
}

TEST_CASE("safetensors: a file cut at any byte is refused", "[safetensors]") {
  const std::string whole =
      file_of(object({"\"__metadata__\":{\"k\":\"v\"}", tensor("a", "F32", "[2]", 0, 8), tensor("b", "U8", "[3]", 8, 11)}), 11);
  CHECK(refusal(whole) == "no error");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    CHECK(error_text([&] { safetensors_reader(bytes_of(std::string_view(whole).substr(0, bytes)), "f"); }) != "no error");
}

TEST_CASE("safetensors: every dtype of the official package is known, with its size", "[safetensors]") {
  const std::vector<std::pair<std::string, std::size_t>> bytes_of_eight{
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
      {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
      {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  for (const auto& [name, bytes] : bytes_of_eight) {
    const std::string file = file_of(object({tensor("t", name, "[2,4]", 0, bytes)}), bytes);
    const safetensors_reader reader(bytes_of(file), "f");
    CHECK(gyre::name_of(reader.at("t").type) == name);
    CHECK(reader.at("t").shape == std::vector<gyre::index>{2, 4});
    CHECK(reader.at("t").count() == 8);
    std::string read(bytes, ' ');
    reader.read_bytes(reader.at("t"), std::as_writable_bytes(std::span(read)));
    CHECK(read == file.substr(file.size() - bytes));
  }
}
