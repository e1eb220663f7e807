// safetensors: the official package reads what gyre writes, and the other way round; the two write the same bytes.
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>

#include "io/support.hpp"
#include "support/skip.hpp"

using gyre::dtype;
using gyre::safetensors_reader;
using gyre::tensor_source;
using gyre_test::bytes_of;
using gyre_test::scratch_folder;
using shape = std::vector<gyre::index>;

namespace {

/// Byte i of a tensor of the golden file: see read_safetensors.py.
std::string pattern(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(static_cast<unsigned char>((37 * i + 11) % 251));
  return out;
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

/// The output of a command; its exit status goes to `status`.
std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> block;
  for (std::size_t got; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;) text.append(block.data(), got);
  status = WEXITSTATUS(::pclose(pipe));
  return text;
}

}  // namespace

TEST_CASE("safetensors: the official package's file is read, and written byte for byte", "[safetensors]") {
  const std::string official = gyre::read_file(gyre_test::beside(__FILE__, "../golden/io/official.safetensors"));
  const std::string ones("\1\0\1", 3), bytes = pattern(64);
  const std::string_view odd = "\xC3\xA4\xE2\x82\xAC\"\\\n\x01";
  const std::vector<tensor_source> tensors{
      {"core_block.0.attn.Wqkv.weight", dtype::f32, {3, 5}, bytes.data()},
      {"transformer.wte.weight", dtype::f16, {2, 3, 2}, bytes.data()},
      {"a/double", dtype::f64, {2}, bytes.data()},
      {"scalar", dtype::i32, {}, bytes.data()},
      {"none", dtype::f32, {0, 7}, nullptr},
      {"bytes", dtype::u8, {3}, bytes.data()},
      {"signed", dtype::i8, {1, 1}, bytes.data()},
      {"steps", dtype::u64, {2}, bytes.data()},
      {"long", dtype::i64, {1}, bytes.data()},
      {"short", dtype::i16, {3}, bytes.data()},
      {"unsigned short", dtype::u16, {1}, bytes.data()},
      {"unsigned", dtype::u32, {2}, bytes.data()},
      {"flags", dtype::boolean, {3}, ones.data()},
      {"pairs", dtype::c64, {2}, bytes.data()},
      {std::string(odd), dtype::u8, {1}, bytes.data()},
  };
  const std::map<std::string, std::string> metadata{{"format", "gyre \xC3\xA4 \"quoted\"\n"}};
  CHECK((gyre::safetensors_bytes(tensors, metadata) == official));

  const safetensors_reader reader(bytes_of(official), "official");
  CHECK(reader.tensors().size() == tensors.size());
  CHECK(reader.metadata() == std::vector<std::pair<std::string, std::string>>(metadata.begin(), metadata.end()));
  for (const tensor_source& t : tensors) {
    const gyre::stored_tensor& found = reader.at(t.name);
    CHECK(found.type == t.type);
    CHECK(found.shape == t.shape);
    std::string read(found.end - found.begin, '?');
    reader.read_bytes(found, std::as_writable_bytes(std::span(read)));
    CHECK(read == std::string_view(static_cast<const char*>(t.data), read.size()));
  }
}

TEST_CASE("safetensors: the official package reads what is written", "[safetensors][python]") {
  std::mt19937_64 random(5);
  const auto dyadic = [&] {
    return static_cast<double>(static_cast<std::int64_t>(random() % 4096) - 2048) * 0x1p-6;
  };  // exact sums
  std::vector<float> floats(4 * 96);
  std::vector<double> doubles(7);
  std::vector<std::int32_t> integers(5);
  std::vector<std::uint64_t> counters(3);
  std::vector<std::uint8_t> flags(9);
  std::vector<std::uint16_t> halves(6);
  for (float& x : floats) x = static_cast<float>(dyadic());
  for (double& x : doubles) x = dyadic();
  for (auto& x : integers) x = static_cast<std::int32_t>(random());
  for (auto& x : counters) x = random();
  for (auto& x : flags) x = static_cast<std::uint8_t>(random());
  for (auto& x : halves) x = static_cast<std::uint16_t>(0x3F80 + random() % 64);
  const double scalar = 0.1;
  const std::vector<tensor_source> tensors{{"floats", {4, 96}, floats.data()},
                                           {"doubles", {7}, doubles.data()},
                                           {"integers", {5, 1}, integers.data()},
                                           {"counters", {3}, counters.data()},
                                           {"bytes", {3, 3}, flags.data()},
                                           {"halves", dtype::bf16, {2, 3}, halves.data()},
                                           {"scalar", {}, &scalar},
                                           {"none", dtype::f16, {2, 0}, nullptr},
                                           {"packed", dtype::f8_e4m3, {9}, flags.data()},
                                           {"\xC3\xA4 \"\\\n\x01\xF0\x9F\x98\x80", {1}, flags.data()}};
  const std::map<std::string, std::string> metadata{{"format", "pt"}, {"step", "12"}, {"\xC3\xA4", "\"\n"}};
  const scratch_folder folder;
  gyre::write_file(folder / "f.safetensors", gyre::safetensors_bytes(tensors, metadata));

  const char* chosen = ::getenv("GYRE_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  int status = 0;
  const std::string output = output_of("'" + python + "' '" + gyre_test::beside(__FILE__, "read_safetensors.py").string() +
                                           "' '" + (folder / "f.safetensors").string() + "' 2>&1",
                                       status);
  if (status == 77) return gyre_test::skip(output + "(set GYRE_PYTHON to a python that has it)");
  if (status == 127)
    return gyre_test::skip("there is no " + python + " (set GYRE_PYTHON to a python with safetensors and numpy)");
  CAPTURE(output);
  REQUIRE(status == 0);

  std::map<std::string, gyre::json> lines;
  std::size_t begin = output.find('\n') + 1;
  const gyre::json first = gyre::parse_json(output.substr(0, begin), "python");
  CHECK(first.keys().size() == metadata.size());
  for (const auto& [key, value] : metadata) CHECK(first.find(key)->string() == value);
  for (std::size_t end; (end = output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    gyre::json line = gyre::parse_json(output.substr(begin, end - begin), "python");
    lines.emplace(line.values()[0].string(), std::move(line));
  }
  CHECK(lines.size() == tensors.size());
  const auto sum = [](const auto& values) {
    double total = 0;
    for (const auto x : values) total += static_cast<double>(x);
    return total;
  };
  std::vector<float> halves_wide;
  for (const std::uint16_t x : halves) halves_wide.push_back(gyre::float_from_bf16(x));
  const std::map<std::string, double> sums{{"floats", sum(floats)}, {"doubles", sum(doubles)}, {"integers", sum(integers)},
                                           {"bytes", sum(flags)},   {"scalar", scalar},        {"halves", sum(halves_wide)}};
  for (const tensor_source& t : tensors) {
    CAPTURE(t.name);
    REQUIRE(lines.count(t.name) == 1);
    const gyre::json& line = lines.at(t.name);
    CHECK(line.values()[1].string() == gyre::name_of(t.type));
    shape found;
    for (const gyre::json& d : line.values()[2].values()) found.push_back(static_cast<gyre::index>(d.int64()));
    CHECK(found == t.shape);
    const std::uint64_t bytes = gyre::detail::checked_bytes(t.type, t.shape, "", "");
    CHECK(line.values()[3].uint64() == crc32({static_cast<const char*>(t.data), bytes}));
    if (sums.count(t.name) > 0) CHECK(line.values()[4].real() == sums.at(t.name));
  }
}
