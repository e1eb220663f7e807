// safetensors: tensors are read into typed memory, and nothing is trusted or read before it is checked. [own_unit]
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/safetensors.hpp>

#include "io/faulty_files.hpp"
#include "io/safetensors_files.hpp"
#include "io/support.hpp"

using gyre::dtype;
using gyre::safetensors_reader;
using gyre_test::bytes_of;
using gyre_test::error_text;
using gyre_test::file_of;
using gyre_test::object;
using gyre_test::scratch_folder;
using gyre_test::tensor;

namespace {

const std::string one = object({tensor("a", "U8", "[4]", 0, 4)});  // 53 bytes

}  // namespace

TEST_CASE("safetensors: a header is read only after its size is known to be in the file", "[safetensors]") {
  const scratch_folder folder;
  for (const std::int64_t claim :
       {std::int64_t{54}, std::int64_t{100'000'000}, std::int64_t{100'000'001}, std::int64_t{1} << 62}) {
    gyre::write_file(folder / "f", file_of(one, 0, claim));
    gyre_test::faulty_files files(folder.path());
    CHECK(error_text([&] { safetensors_reader(folder / "f", files); }) != "no error");
    CHECK(files.log == std::vector<std::string>{"open f", "fstat f", "pread f", "close f"});
  }
  // The longest header that the format allows is no claim but there.
  CHECK(error_text([&] { safetensors_reader(bytes_of(file_of("{}" + std::string(99'999'998, ' '), 0)), "f"); }) == "no error");
}

TEST_CASE("safetensors: a tensor of any size costs nothing until it is read", "[safetensors]") {
  const scratch_folder folder;
  const std::uint64_t bytes = std::uint64_t{1} << 40;  // a file with a hole: it takes one block on the disk
  const std::string header = object({tensor("a", "U8", "[" + std::to_string(bytes) + "]", 0, bytes)});
  gyre::write_file(folder / "f", file_of(header, 0));
  std::filesystem::resize_file(folder / "f", 8 + header.size() + bytes);
  const safetensors_reader reader(folder / "f");
  CHECK(reader.at("a").count() == gyre::index{1} << 40);
  CHECK(error_text([&] { reader.read<std::uint8_t>("a", {gyre::index{1} << 40}, std::span<std::uint8_t>()); }) ==
        (folder / "f").string() + ": tensor 'a' has 1099511627776 bytes, the buffer 0");
}

TEST_CASE("safetensors: reading into typed memory checks dtype, shape and room", "[safetensors]") {
  std::string file = file_of(object({tensor("w", "F32", "[2,3]", 0, 24), tensor("s", "I64", "[]", 24, 32),
                                     tensor("h", "F16", "[2]", 32, 36), tensor("none", "F32", "[0,3]", 36, 36)}),
                             36);
  const std::array<float, 6> values{1.5f, -2.0f, 0.1f, 1e30f, -0.0f, 3.0f};
  std::memcpy(file.data() + file.size() - 36, values.data(), 24);
  const std::int64_t scalar = -7;
  std::memcpy(file.data() + file.size() - 12, &scalar, 8);
  const std::array<std::uint16_t, 2> halves{0x3C00, 0xC000};
  std::memcpy(file.data() + file.size() - 4, halves.data(), 4);
  const safetensors_reader reader(bytes_of(file), "w.safetensors");

  std::array<float, 6> got{};
  reader.read<float>("w", {2, 3}, got);
  CHECK(std::memcmp(got.data(), values.data(), sizeof got) == 0);
  std::int64_t seven = 0;
  reader.read<std::int64_t>("s", {}, std::span(&seven, 1));
  CHECK(seven == -7);
  reader.read<float>("none", {0, 3}, std::span<float>());

  std::array<double, 6> wide{};
  CHECK(error_text([&] {
          reader.read<double>("w", {2, 3}, wide);
        }) == "w.safetensors: tensor 'w': expected F64 [2, 3], found F32 [2, 3]");
  CHECK(error_text([&] {
          reader.read<float>("w", {3, 2}, got);
        }) == "w.safetensors: tensor 'w': expected F32 [3, 2], found F32 [2, 3]");
  CHECK(error_text([&] { reader.read<float>("w", {6}, got); }) ==
        "w.safetensors: tensor 'w': expected F32 [6], found F32 [2, 3]");
  CHECK(error_text([&] { reader.read<std::uint64_t>("s", {}, std::span<std::uint64_t>()); }) ==
        "w.safetensors: tensor 's': expected U64 [], found I64 []");
  CHECK(error_text([&] {
          reader.read<float>("w", {2, 3}, std::span(got).first(5));
        }) == "w.safetensors: tensor 'w' has 24 bytes, the buffer 20");
  CHECK(error_text([&] {
          reader.read<float>("v", {2, 3}, got);
        }) == "w.safetensors: there is no tensor 'v' among the file's 4");
  CHECK(reader.find("v") == nullptr);
  CHECK(reader.find("s")->type == dtype::i64);

  reader.read_converted<double>("w", {2, 3}, wide);
  for (std::size_t i = 0; i < 6; ++i) CHECK(wide[i] == static_cast<double>(values[i]));
  reader.read_converted<float>("w", {2, 3}, got);
  CHECK(std::memcmp(got.data(), values.data(), sizeof got) == 0);
  std::array<float, 2> two{};
  reader.read_converted<float>("h", {2}, two);
  CHECK(two == std::array<float, 2>{1.0f, -2.0f});
  CHECK(error_text([&] {
          reader.read_converted<float>("h", {1, 2}, two);
        }) == "w.safetensors: tensor 'h': expected real numbers [1, 2], found F16 [2]");
  CHECK(error_text([&] { reader.read_converted<float>("s", {}, std::span(two).first(1)); }) ==
        "w.safetensors: tensor 's': expected F16, BF16, F32 or F64, found I64 []");
  CHECK(error_text([&] { reader.read_converted<float>("h", {2}, std::span(two).first(1)); }) ==
        "w.safetensors: tensor 'h' has 2 elements, the buffer 1");
}

TEST_CASE("safetensors: conversion of long tensors, F64 rounded to float", "[safetensors]") {
  constexpr std::size_t count = 5000;  // more than two blocks
  std::string file =
      file_of(object({tensor("d", "F64", "[5000]", 0, 40000), tensor("b", "BF16", "[5000]", 40000, 50000)}), 50000);
  std::vector<double> doubles(count);
  std::vector<std::uint16_t> halves(count);
  for (std::size_t i = 0; i < count; ++i) {
    doubles[i] = 1.0 / (1.0 + static_cast<double>(i));
    halves[i] = static_cast<std::uint16_t>(0x3F00 + i);
  }
  std::memcpy(file.data() + file.size() - 50000, doubles.data(), 40000);
  std::memcpy(file.data() + file.size() - 10000, halves.data(), 10000);
  const scratch_folder folder;
  gyre::write_file(folder / "f", file);
  gyre_test::faulty_files files(folder.path());
  files.most_bytes = 999;
  files.interrupts = 1;
  const safetensors_reader reader(folder / "f", files);
  std::vector<float> got(count);
  reader.read_converted<float>("d", {5000}, got);
  for (std::size_t i = 0; i < count; ++i) REQUIRE(got[i] == static_cast<float>(doubles[i]));
  reader.read_converted<float>("b", {5000}, got);
  for (std::size_t i = 0; i < count; ++i) REQUIRE(got[i] == gyre::float_from_bf16(halves[i]));
}

TEST_CASE("safetensors: failing reads are reported, a file shortened meanwhile too", "[safetensors]") {
  const scratch_folder folder;
  const std::string path = (folder / "f").string();
  gyre::write_file(folder / "f", file_of(one, 4));
  const std::vector<std::string> expected{"safetensors: cannot open " + path, "safetensors: cannot examine " + path,
                                          "safetensors: cannot read " + path + " at byte 0",
                                          "safetensors: cannot read " + path + " at byte 8",
                                          "safetensors: cannot read " + path + " at byte 61"};
  std::array<std::uint8_t, 4> into{};
  for (std::size_t n = 0; n < expected.size(); ++n) {
    gyre_test::faulty_files files(folder.path());
    files.fail_from = static_cast<int>(n);
    CHECK(error_text([&] { safetensors_reader(folder / "f", files).read<std::uint8_t>("a", {4}, into); }) ==
          expected[n] + ": Input/output error (error 5)");
  }
  const safetensors_reader reader(folder / "f");
  std::filesystem::resize_file(folder / "f", 63);
  CHECK(error_text([&] { reader.read<std::uint8_t>("a", {4}, into); }) ==
        "safetensors: " + path + " ended at byte 63 while it was read; it has been shortened");
  CHECK(error_text([&] { safetensors_reader{folder.path()}; }) ==
        "safetensors: " + folder.path().string() + " is not a regular file");
  CHECK(error_text([&] { safetensors_reader{folder / "none"}; }) ==
        "safetensors: cannot open " + (folder / "none").string() + ": No such file or directory (error 2)");
}
