// Byte tokens: every byte string survives.
#include <catch2/catch.hpp>

#include <gyre/io/byte_tokens.hpp>

#include <string>
#include <vector>

using gyre::byte_tokens;
using gyre::token;

TEST_CASE("byte tokens are the bytes, after a bos if asked for", "[tokens]") {
  CHECK(byte_tokens::encode("") == std::vector<token>{});
  CHECK(byte_tokens::encode("", true) == std::vector<token>{256});
  CHECK(byte_tokens::encode("A\xC3\xA9") == std::vector<token>{0x41, 0xC3, 0xA9});
  CHECK(byte_tokens::encode("A", true) == std::vector<token>{256, 0x41});
  CHECK(byte_tokens::vocabulary == 257);
}

TEST_CASE("every byte survives encode and decode, invalid UTF-8 and zeros included", "[tokens]") {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(static_cast<unsigned char>(i));
  all += "\xF0\x9F\xC3";
  CHECK(byte_tokens::decode(byte_tokens::encode(all)) == all);
  CHECK(byte_tokens::decode(byte_tokens::encode(all, true)) == all);
  for (int i = 0; i < 256; ++i) {
    REQUIRE(byte_tokens::bytes(i).size() == 1);
    REQUIRE(static_cast<unsigned char>(byte_tokens::bytes(i)[0]) == i);
  }
  CHECK(byte_tokens::bytes(byte_tokens::bos).empty());
}

TEST_CASE("tokens outside the vocabulary are refused with their number", "[tokens]") {
  CHECK_THROWS_WITH(byte_tokens::bytes(257), Catch::Contains("token 257"));
  CHECK_THROWS_WITH(byte_tokens::decode(std::vector<token>{65, -1}), Catch::Contains("token -1"));
}
