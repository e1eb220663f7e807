// Decodes the text of an R package's data file (`Rdata.rdb`): the novels that the demo trains on.
//
// The file is a row of entries, each a 4-byte big-endian length of the plain bytes and one zlib stream. The plain bytes are an
// R serialisation ("R Internals", section 1.8): "X\n", version, two R versions, in version 3 the native encoding's name, then
// one item. Only character vectors without attributes are read. Nothing in the file is trusted: every length is checked against
// what is there, and memory grows with the bytes that arrive, not with the bytes that were promised.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/io/utf8.hpp>

namespace examples {

/// What a data file may ask for at most, in bytes.
struct novel_limits {
  std::uint64_t file = std::uint64_t{64} << 20;    // the file as stored
  std::uint64_t entry = std::uint64_t{64} << 20;   // one entry when inflated
  std::uint64_t total = std::uint64_t{256} << 20;  // all entries when inflated
};

namespace detail {

/// Walks over bytes and refuses to read past their end. `where` names the entry in messages.
class byte_reader {
 public:
  byte_reader(std::span<const unsigned char> bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t position() const { return at_; }
  const std::string& where() const { return where_; }

  std::string_view take(std::size_t count, const char* what) {
    gyre::require(count <= left(), where_, ": ", what, " at byte ", at_, " needs ", count, " bytes, ", left(), " are left");
    const auto* first = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += count;
    return {first, count};
  }

  std::uint32_t big_endian(const char* what) {
    std::uint32_t value = 0;
    for (const char byte : take(4, what)) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
  }

 private:
  std::span<const unsigned char> bytes_;
  std::size_t at_ = 0;
  std::string where_;
};

/// ISO 8859-1 numbers its characters as Unicode does.
inline std::string utf8_from_latin1(std::string_view text) {
  std::string out;
  for (const char c : text) gyre::detail::append_utf8(out, static_cast<unsigned char>(c));
  return out;
}

/// Owns zlib's state, so that an exception frees it.
struct inflater {
  z_stream stream{};
  inflater() { gyre::require(inflateInit(&stream) == Z_OK, "inflate: zlib did not start"); }
  ~inflater() { inflateEnd(&stream); }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
};

/// Inflates the zlib stream that `packed` begins with, which must give exactly `plain` bytes. Returns them and sets `used` to
/// the length of the stream.
inline std::vector<unsigned char> inflate_exactly(std::span<const unsigned char> packed, std::size_t plain, std::size_t& used,
                                                  const std::string& where) {
  inflater state;
  z_stream& stream = state.stream;
  std::vector<unsigned char> out;
  std::vector<unsigned char> window(std::size_t{1} << 16);
  std::size_t given = 0;
  for (int status = Z_OK; status != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      gyre::require(given < packed.size(), where, ": the zlib stream ends early, after ", packed.size(), " bytes and ",
                    out.size(), " of ", plain, " inflated ones");
      const std::size_t chunk = (std::min)(packed.size() - given, std::size_t{1} << 20);
      stream.next_in = const_cast<Bytef*>(packed.data() + given);  // zlib only reads it
      stream.avail_in = static_cast<uInt>(chunk);
      given += chunk;
    }
    stream.next_out = window.data();
    stream.avail_out = static_cast<uInt>(window.size());
    status = inflate(&stream, Z_NO_FLUSH);
    gyre::require(status == Z_OK || status == Z_STREAM_END || (status == Z_BUF_ERROR && stream.avail_in == 0), where,
                  ": not a sound zlib stream: ", stream.msg != nullptr ? stream.msg : "zlib error", " (code ", status, ")");
    const std::size_t made = window.size() - stream.avail_out;
    gyre::require(made <= plain - out.size(), where, ": inflates to more than the ", plain, " bytes that it states");
    out.insert(out.end(), window.begin(), window.begin() + static_cast<std::ptrdiff_t>(made));
  }
  gyre::require(out.size() == plain, where, ": inflates to ", out.size(), " bytes and states ", plain);
  used = given - stream.avail_in;
  return out;
}

inline constexpr unsigned r_string = 9, r_string_vector = 16;                        // SEXP types
inline constexpr unsigned r_bytes = 1u << 1, r_latin1 = 1u << 2, r_ascii = 1u << 6;  // encoding bits of a string
inline constexpr std::uint32_t r_missing = 0xFFFFFFFFu;                              // the length of NA

/// One string of the vector, as UTF-8.
inline std::string read_string(byte_reader& reader) {
  const std::size_t begin = reader.position();
  const std::uint32_t flags = reader.big_endian("a string's flags");
  gyre::require((flags & 0xFF) == r_string && (flags & 0x700) == 0, reader.where(), ": flags ", flags, " at byte ", begin,
                " are not those of a plain string");
  const std::uint32_t length = reader.big_endian("a string's length");
  gyre::require(length != r_missing, reader.where(), ": the string at byte ", begin, " is missing (NA)");
  const std::string_view text = reader.take(length, "a string");
  const unsigned encoding = flags >> 12;
  gyre::require((encoding & r_bytes) == 0, reader.where(), ": the string at byte ", begin, " is marked as raw bytes");
  if ((encoding & r_latin1) != 0) return utf8_from_latin1(text);
  if ((encoding & r_ascii) != 0)
    gyre::require(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }),
                  reader.where(), ": the string at byte ", begin, " is marked as ASCII and is not");
  const std::size_t valid = gyre::utf8_valid_prefix(text);
  gyre::require(valid == text.size(), reader.where(), ": the string at byte ", begin, " is not UTF-8 from its byte ", valid,
                " on");
  return std::string(text);
}

/// The strings of one serialised character vector, each followed by a newline.
inline std::string read_lines(std::span<const unsigned char> plain, const std::string& where) {
  byte_reader reader(plain, where);
  gyre::require(reader.take(2, "the format's mark") == "X\n", where, ": not a binary (XDR) R serialisation");
  const std::uint32_t version = reader.big_endian("the version");
  gyre::require(version == 2 || version == 3, where, ": serialisation version ", version, "; 2 and 3 are known");
  reader.take(8, "the R versions");
  if (version == 3) {
    const std::string_view native = reader.take(reader.big_endian("the encoding's length"), "the encoding's name");
    gyre::require(native == "UTF-8", where, ": the native encoding is not UTF-8");
  }
  const std::uint32_t flags = reader.big_endian("the item's flags");
  gyre::require((flags & 0xFF) == r_string_vector && (flags & 0x700) == 0, where, ": the item has flags ", flags,
                ", not those of a character vector without attributes");
  const std::uint32_t count = reader.big_endian("the number of strings");
  gyre::require(count <= reader.left() / 8, where, ": ", count, " strings cannot fit into ", reader.left(), " bytes");
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) (text += read_string(reader)) += '\n';
  gyre::require(reader.left() == 0, where, ": ", reader.left(), " bytes follow the last string");
  return text;
}

}  // namespace detail

/// The text of a whole `.rdb` file: all character vectors in the file's order, each string as one line, UTF-8.
/// Throws gyre::error with the entry, the byte and the numbers if anything in `file` does not fit.
inline std::string decode_novels(std::span<const unsigned char> file, const novel_limits& limits = {}) {
  gyre::require(!file.empty(), "decode_novels: the file is empty");
  gyre::require(file.size() <= limits.file, "decode_novels: the file has ", file.size(), " bytes, more than ", limits.file);
  std::string text;
  std::uint64_t total = 0;
  for (std::size_t at = 0, entry = 0; at < file.size(); ++entry) {
    std::string where = "decode_novels: entry " + std::to_string(entry) + " at byte " + std::to_string(at);
    detail::byte_reader reader(file.subspan(at), where);
    const std::uint32_t plain = reader.big_endian("the plain length");
    total += plain;
    gyre::require(plain <= limits.entry && total <= limits.total, where, ": states ", plain, " inflated bytes (", total,
                  " in all); at most ", limits.entry, " (", limits.total, " in all) are read");
    std::size_t used = 0;
    text += detail::read_lines(detail::inflate_exactly(file.subspan(at + 4), plain, used, where), where);
    at += 4 + used;
  }
  return text;
}

/// All bytes of a file of at most `limit` bytes. Throws gyre::error with the path.
inline std::vector<unsigned char> read_limited(const std::string& path, std::uint64_t limit) {
  std::ifstream in(path, std::ios::binary);
  gyre::require(in.good(), "read_limited: cannot open ", path);
  std::vector<unsigned char> bytes;
  std::vector<char> window(std::size_t{1} << 16);
  while (in.read(window.data(), static_cast<std::streamsize>(window.size())) || in.gcount() > 0) {
    gyre::require(bytes.size() + static_cast<std::size_t>(in.gcount()) <= limit, "read_limited: ", path, " has more than ",
                  limit, " bytes");
    bytes.insert(bytes.end(), window.begin(), window.begin() + in.gcount());
  }
  gyre::require(!in.bad(), "read_limited: reading ", path, " failed after ", bytes.size(), " bytes");
  return bytes;
}

}  // namespace examples
