// safetensors: what is written is what the official package writes, and comes back bit for bit.
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gyre/io/folder_transaction.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"
#include "support/skip.hpp"

using gyre::dtype;
using gyre::safetensors_reader;
using gyre::tensor_source;
using gyre_test::bytes_of;
using gyre_test::error_text;
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

struct random_file {
  std::vector<std::string> data;
  std::vector<tensor_source> tensors;
  std::map<std::string, std::string> metadata;
};

std::string random_name(std::mt19937_64& random) {
  std::string name;
  for (std::uint64_t i = random() % 12; i > 0; --i) {
    const std::uint32_t most[] = {0x80, 0x800, 0x10000, 0x110000};
    const auto point = 1 + static_cast<std::uint32_t>(random() % (most[random() % 4] - 1));
    if (point < 0xD800 || point > 0xDFFF) gyre::detail::append_utf8(name, point);
  }
  return name;
}

random_file make_random(std::mt19937_64& random) {
  random_file out;
  std::set<std::string> used;
  const std::uint64_t count = random() % 9;
  for (std::uint64_t t = 0; t < count; ++t) {
    std::string name = random_name(random);
    if (!used.insert(name).second) continue;
    const auto type = static_cast<dtype>(random() % 22);
    shape dimensions;
    for (std::uint64_t d = random() % 4; d > 0; --d) dimensions.push_back(static_cast<gyre::index>(random() % 5));
    if (gyre::bits_of(type) < 8) dimensions.push_back(4);  // whole bytes
    std::size_t elements = 1;
    for (const gyre::index d : dimensions) elements *= static_cast<std::size_t>(d);
    std::string bytes(elements * static_cast<std::size_t>(gyre::bits_of(type)) / 8, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    out.data.push_back(std::move(bytes));
    out.tensors.emplace_back(std::move(name), type, std::move(dimensions), nullptr);
  }
  for (std::size_t t = 0; t < out.tensors.size(); ++t) out.tensors[t].data = out.data[t].data();
  for (std::uint64_t m = random() % 3; m > 0; --m) out.metadata[random_name(random)] = random_name(random);
  return out;
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

TEST_CASE("safetensors: random tensors come back bit for bit, through memory and through files", "[safetensors]") {
  std::mt19937_64 random(3);
  const scratch_folder folder;
  for (int i = 0; i < 300; ++i) {
    const random_file file = make_random(random);
    const std::string bytes = gyre::safetensors_bytes(file.tensors, file.metadata);
    gyre_test::faulty_files files(folder.path());
    files.most_bytes = 1 + random() % 50;
    files.interrupts = i % 2;
    gyre::write_file_atomically(
        folder / "f", [&](gyre::file_writer& out) { gyre::write_safetensors(out, file.tensors, file.metadata); }, files);
    REQUIRE(gyre::read_file(folder / "f") == bytes);
    const safetensors_reader memory(bytes_of(bytes), "memory"), disk(folder / "f", files);
    for (const safetensors_reader* reader : {&memory, &disk}) {
      REQUIRE(reader->tensors().size() == file.tensors.size());
      REQUIRE(reader->metadata() ==
              std::vector<std::pair<std::string, std::string>>(file.metadata.begin(), file.metadata.end()));
      for (std::size_t t = 0; t < file.tensors.size(); ++t) {
        const gyre::stored_tensor& found = reader->at(file.tensors[t].name);
        REQUIRE(found.type == file.tensors[t].type);
        REQUIRE(found.shape == file.tensors[t].shape);
        std::string read(found.end - found.begin, '?');
        reader->read_bytes(found, std::as_writable_bytes(std::span(read)));
        REQUIRE(read == file.data[t]);
      }
    }
    // The layout: a header of whole eights, each tensor aligned to its elements.
    const std::uint64_t header = gyre::safetensors_header_bytes(bytes_of(bytes).first(8), bytes.size(), "memory");
    REQUIRE(header % 8 == 0);
    for (const gyre::stored_tensor& t : memory.tensors())
      if (t.end > t.begin && gyre::bits_of(t.type) >= 8)
        REQUIRE(t.begin % (static_cast<std::uint64_t>(gyre::bits_of(t.type)) / 8) == 0);
    // The order in which tensors are given does not matter.
    std::vector<tensor_source> reversed(file.tensors.rbegin(), file.tensors.rend());
    REQUIRE(gyre::safetensors_bytes(reversed, file.metadata) == bytes);
  }
}

TEST_CASE("safetensors: every float and double survives, NaN payloads and signed zeros too", "[safetensors]") {
  std::mt19937_64 random(4);
  std::vector<float> floats(1000);
  std::vector<double> doubles(1000);
  for (float& x : floats) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  for (double& x : doubles) x = std::bit_cast<double>(random());
  const std::vector<tensor_source> tensors{{"f", {10, 100}, floats.data()}, {"d", {1000}, doubles.data()}};
  const std::string bytes = gyre::safetensors_bytes(tensors);
  const safetensors_reader reader(bytes_of(bytes), "memory");
  std::vector<float> floats_read(1000);
  std::vector<double> doubles_read(1000);
  reader.read<float>("f", {10, 100}, floats_read);
  reader.read<double>("d", {1000}, doubles_read);
  CHECK(std::memcmp(floats.data(), floats_read.data(), 4000) == 0);
  CHECK(std::memcmp(doubles.data(), doubles_read.data(), 8000) == 0);
}

TEST_CASE("safetensors: nothing wrong is written", "[safetensors]") {
  const float x = 1;
  const auto refusal = [&](const std::vector<tensor_source>& tensors, const std::map<std::string, std::string>& metadata = {}) {
    struct {
      bool touched = false;
      void write(const void*, std::size_t) { touched = true; }
    } sink;
    const std::string text = error_text([&] { gyre::write_safetensors(sink, tensors, metadata); });
    CHECK(sink.touched == (text == "no error"));
    return text;
  };
  CHECK(refusal({}) == "no error");
  CHECK(refusal({{"a", {1}, &x}, {"b", {}, &x}}) == "no error");
  CHECK(refusal({{"a", {1}, &x}, {"b", {}, &x}, {"a", {}, &x}}) == "write_safetensors: two tensors are named 'a'");
  CHECK(refusal({{"__metadata__", {1}, &x}}) == "write_safetensors: a tensor cannot be named __metadata__");
  CHECK(refusal({{"\xFF", {1}, &x}}) == "write_safetensors: the text '\\xff' is not valid UTF-8 at byte 0");
  CHECK(refusal({{std::string("a\0", 2), {1}, &x}}) == "write_safetensors: the text 'a\\x00' holds a null byte");
  CHECK(refusal({{"a", {-1}, &x}}) == "write_safetensors: tensor 'a': F32 [-1] has a negative dimension");
  CHECK(refusal({{"a", {gyre::index{1} << 60}, &x}}) ==
        "write_safetensors: tensor 'a': F32 [1152921504606846976] takes more bits than a 63-bit number can count");
  CHECK(refusal({{"a", dtype::f4, {3}, &x}}) == "write_safetensors: tensor 'a': F4 [3] does not fill whole bytes");
  CHECK(refusal({{"a", dtype::f32, {3}, nullptr}}) == "write_safetensors: tensor 'a' has no data");
  CHECK(refusal({{"a", dtype::f32, {3, 0}, nullptr}}) == "no error");
  CHECK(refusal({}, {{"a", "\xC0"}}) == "write_safetensors: the text '\\xc0' is not valid UTF-8 at byte 0");
  CHECK(refusal({}, {{std::string("\0", 1), ""}}) == "write_safetensors: the text '\\x00' holds a null byte");
  CHECK(refusal({}, {{"a", std::string("\0", 1)}}) == "write_safetensors: the text '\\x00' holds a null byte");
  CHECK(refusal({}, {{"a", std::string(100'000'000, 'x')}}) ==
        "write_safetensors: a header of 100000032 bytes is larger than the format's limit of 100000000");
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

TEST_CASE("safetensors: a checkpoint of tensors whose disk fills up leaves the one before", "[safetensors][checkpoint]") {
  std::vector<float> weights(1000, 1.0f);
  const auto save = [&](const std::filesystem::path& folder, const gyre::file_system& files) {
    gyre::folder_transaction saving(folder, files);
    saving.write("model.safetensors", [&](gyre::file_writer& out) {
      gyre::write_safetensors(out, std::vector<tensor_source>{{"w", {10, 100}, weights.data()}, {"b", {1000}, weights.data()}});
    });
    saving.commit();
  };
  const scratch_folder folder;
  save(folder / "step-1", gyre_test::unsynced_files());
  weights.assign(1000, 2.0f);
  for (long room = 0; room < 8000; room += 397) {
    gyre_test::faulty_files files(folder.path());
    files.room = room;
    CHECK_THAT(
        error_text([&] { save(folder / "step-2", files); }),
        Catch::StartsWith("cannot write ") &&
            Catch::Contains("model.safetensors: No space left on device (error 28) after " + std::to_string(room) + " bytes"));
    const auto last = gyre::latest(folder.path(), "step-");
    REQUIRE(last == folder / "step-1");
    std::vector<float> read(1000);
    safetensors_reader(*last / "model.safetensors").read<float>("w", {10, 100}, read);
    CHECK(read == std::vector<float>(1000, 1.0f));
  }
}
