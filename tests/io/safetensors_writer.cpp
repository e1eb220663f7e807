// safetensors: what is written comes back bit for bit, and nothing wrong is written.
#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gyre/io/folder_transaction.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>

#include "io/faulty_files.hpp"
#include "io/support.hpp"

using gyre::dtype;
using gyre::safetensors_reader;
using gyre::tensor_source;
using gyre_test::bytes_of;
using gyre_test::error_text;
using gyre_test::scratch_folder;
using shape = std::vector<gyre::index>;

namespace {

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

}  // namespace

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
