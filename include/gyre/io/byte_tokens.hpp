// Bytes as tokens: the tokenizer that needs no file.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A token is a byte, 0 to 255; token 256 marks the begin of a text. Every text, UTF-8 or not, survives encode and decode
/// unchanged.
struct byte_tokens {
  static constexpr int vocabulary = 257;
  static constexpr token bos = 256;

  /// One token a byte; with `begin`, after a bos.
  static std::vector<token> encode(std::string_view text, bool begin = false) {
    std::vector<token> tokens;
    tokens.reserve(text.size() + 1);
    if (begin) tokens.push_back(bos);
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }

  /// The bytes of one token; none for bos. Throws for a token outside the vocabulary.
  static std::string_view bytes(token t) {
    require(t >= 0 && t < vocabulary, "byte_tokens: token ", t, " is outside the vocabulary of ", vocabulary);
    return t == bos ? std::string_view() : std::string_view(&table[static_cast<std::size_t>(t)], 1);
  }

  /// The bytes of all tokens, bos left out. Throws for a token outside the vocabulary.
  static std::string decode(std::span<const token> tokens) {
    std::string text;
    text.reserve(tokens.size());
    for (const token t : tokens) text += bytes(t);
    return text;
  }

 private:
  static constexpr std::array<char, 256> table = [] {
    std::array<char, 256> bytes{};
    for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<char>(static_cast<unsigned char>(i));
    return bytes;
  }();
};

GYRE_END
