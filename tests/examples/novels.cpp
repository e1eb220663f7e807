// The decoder of the demo's text, on small files made here, sound and hostile. [own_unit]
#include "../../examples/tools/novels.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "../support/skip.hpp"

namespace {

using bytes = std::vector<unsigned char>;

bytes& operator<<(bytes& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

bytes& operator<<(bytes& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<unsigned char>(value >> shift & 0xFF));
  return out;
}

constexpr std::uint32_t ascii = 0x40009, utf8 = 0x8009, latin1 = 0x4009, native = 0x0009, raw = 0x2009;

struct line {
  std::string_view text;
  std::uint32_t flags = ascii;
};

bytes header(std::uint32_t version = 3) {
  bytes out;
  out << "X\n" << version << 0x00040201u << 0x00030500u;
  if (version == 3) out << 5u << "UTF-8";
  return out;
}

bytes vector_of(const std::vector<line>& lines, std::uint32_t version = 3) {
  bytes out = header(version);
  out << 16u << static_cast<std::uint32_t>(lines.size());
  for (const auto& [text, flags] : lines) out << flags << static_cast<std::uint32_t>(text.size()) << text;
  return out;
}

// An entry that states `stated` inflated bytes.
bytes entry(const bytes& plain, std::size_t stated) {
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  bytes packed(size);
  REQUIRE(compress2(packed.data(), &size, plain.data(), static_cast<uLong>(plain.size()), 9) == Z_OK);
  bytes out;
  out << static_cast<std::uint32_t>(stated);
  out.insert(out.end(), packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(size));
  return out;
}
bytes entry(const bytes& plain) { return entry(plain, plain.size()); }

bytes joined(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The message of the error that decoding `file` throws; empty if it throws none.
std::string refusal(const bytes& file, const examples::novel_limits& limits = {}) {
  try {
    examples::decode_novels(file, limits);
    return "";
  } catch (const gyre::error& problem) {
    return problem.what();
  }
}

auto says(const std::string& part) { return Catch::Contains(part); }

}  // namespace

TEST_CASE("novels: lines of several entries come out in order, each with its newline", "[novels]") {
  const bytes file = joined(entry(vector_of({{"EMMA"}, {""}, {"By Jane Austen"}})), entry(vector_of({{"Persuasion"}}, 2)));
  CHECK(examples::decode_novels(file) == "EMMA\n\nBy Jane Austen\nPersuasion\n");
  CHECK(examples::decode_novels(entry(vector_of({}))).empty());
}

TEST_CASE("novels: every encoding that R marks becomes UTF-8, or is refused", "[novels]") {
  CHECK(examples::decode_novels(entry(vector_of({{"\xC2\xA3", utf8}, {"\xA3\xFF", latin1}, {"\xE2\x82\xAC", native}}))) ==
        "\xC2\xA3\n\xC2\xA3\xC3\xBF\n\xE2\x82\xAC\n");
  CHECK_THAT(refusal(entry(vector_of({{"ab\xA3", utf8}}))), says("is not UTF-8 from its byte 2 on"));
  CHECK_THAT(refusal(entry(vector_of({{"\xED\xA0\x80", native}}))), says("is not UTF-8"));
  CHECK_THAT(refusal(entry(vector_of({{"\xC2\xA3", ascii}}))), says("marked as ASCII and is not"));
  CHECK_THAT(refusal(entry(vector_of({{"x", raw}}))), says("raw bytes"));
}

TEST_CASE("novels: a text longer than every buffer survives", "[novels]") {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 40000; ++i) {
    std::string text(random() % 90, ' ');
    for (char& c : text) c = static_cast<char>(' ' + random() % 95);  // hard to deflate: the stream is over 1 MB
    expected += text + '\n';
    texts.push_back(std::move(text));
  }
  std::vector<line> lines;
  for (const std::string& text : texts) lines.push_back({text});
  const bytes file = entry(vector_of(lines));
  REQUIRE(file.size() > (std::size_t{1} << 20));
  CHECK(examples::decode_novels(file) == expected);
}

TEST_CASE("novels: a file cut anywhere is refused", "[novels]") {
  const bytes first = entry(vector_of({{"It is a truth"}, {"universally acknowledged", utf8}}));
  const bytes file = joined(first, entry(vector_of({{"that"}})));
  for (std::size_t length = 0; length < file.size(); ++length) {
    INFO("the first " << length << " bytes");
    const std::string message = refusal(bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length)));
    if (length == first.size())
      CHECK(message.empty());  // a whole entry is a whole file
    else
      CHECK_THAT(message, says("decode_novels: "));
  }
}

TEST_CASE("novels: no changed byte is taken for text", "[novels]") {
  const bytes file = entry(vector_of({{"It is a truth"}, {"universally acknowledged"}}));
  const std::string text = examples::decode_novels(file);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const unsigned flip : {0x01u, 0x20u, 0x80u, 0xFFu}) {
      bytes changed = file;
      changed[at] = static_cast<unsigned char>(changed[at] ^ flip);
      INFO("byte " << at << " xor " << flip);
      // Bits of zlib's header that only name the compression level may differ without harm; a changed text may not pass.
      std::string got = text;
      try {
        got = examples::decode_novels(changed);
      } catch (const gyre::error&) {
      }
      CHECK(got == text);
    }
  }
}

TEST_CASE("novels: no changed byte of the serialisation reads past its end", "[novels]") {
  const bytes plain = vector_of({{"It is a truth"}, {"acknowledged"}});
  for (std::size_t at = 0; at < plain.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      bytes changed = plain;
      changed[at] = static_cast<unsigned char>(value);
      try {
        const std::string text = examples::detail::read_lines(changed, "test");
        CHECK(text.size() <= plain.size());
      } catch (const gyre::error&) {
      }
    }
  }
}

TEST_CASE("novels: what the file promises is held against what is there", "[novels]") {
  const bytes plain = vector_of({{"text"}});
  SECTION("nothing") { CHECK_THAT(refusal({}), says("the file is empty")); }
  SECTION("a length that exceeds the limit") {
    CHECK_THAT(refusal(entry(plain, 0xFFFFFFFFu)), says("states 4294967295 inflated bytes"));
  }
  SECTION("entries that together exceed the limit") {
    const examples::novel_limits limits{.total = 2 * plain.size() - 1};
    CHECK(refusal(entry(plain), limits).empty());
    CHECK_THAT(refusal(joined(entry(plain), entry(plain)), limits), says("entry 1"));
  }
  SECTION("a file that exceeds the limit") { CHECK_THAT(refusal(entry(plain), {.file = 8}), says("more than 8")); }
  SECTION("a bomb: ten million bytes from ten thousand, stated as a hundred") {
    CHECK_THAT(refusal(entry(bytes(10'000'000), 100)), says("inflates to more than the 100 bytes"));
  }
  SECTION("fewer bytes than stated") { CHECK_THAT(refusal(entry(plain, plain.size() + 1)), says("and states")); }
  SECTION("no zlib stream") { CHECK_THAT(refusal(bytes{0, 0, 0, 9, 'Z', 1, 2, 3, 4, 5}), says("not a sound zlib stream")); }
  SECTION("a stream that wants a dictionary") {
    CHECK_THAT(refusal(bytes{0, 0, 0, 9, 0x78, 0xBB, 1, 2, 3, 4, 5, 6}), says("not a sound zlib stream"));
  }
  SECTION("something after the last entry") { CHECK_THAT(refusal(joined(entry(plain), {0})), says("the plain length")); }
}

TEST_CASE("novels: a serialisation of something else is refused", "[novels]") {
  const auto refused = [](bytes plain) { return refusal(entry(plain)); };
  bytes other = header();
  SECTION("not XDR") {
    other = vector_of({});
    other[0] = 'A';
    CHECK_THAT(refused(other), says("not a binary (XDR)"));
  }
  SECTION("a later version") { CHECK_THAT(refused(vector_of({}, 4)), says("version 4")); }
  SECTION("another native encoding") {
    other.resize(14);
    CHECK_THAT(refused(other << 6u << "latin1" << 16u << 0u), says("native encoding"));
  }
  SECTION("an encoding's name without end") {
    other.resize(14);
    CHECK_THAT(refused(other << 0xFFFFFFF0u << "UTF-8"), says("needs 4294967280 bytes"));
  }
  SECTION("integers") { CHECK_THAT(refused(other << 13u << 1u << 1u), says("flags 13")); }
  SECTION("attributes") { CHECK_THAT(refused(other << (16u | 0x200u) << 0u), says("without attributes")); }
  SECTION("more strings than bytes") {
    CHECK_THAT(refused(other << 16u << 0xFFFFFFFFu), says("4294967295 strings cannot fit"));
  }
  SECTION("a string longer than the rest") {
    CHECK_THAT(refused(other << 16u << 1u << ascii << 0x7FFFFFFFu << "x"), says("needs 2147483647 bytes, 1 are left"));
  }
  SECTION("a missing string") { CHECK_THAT(refused(other << 16u << 1u << native << 0xFFFFFFFFu), says("missing (NA)")); }
  SECTION("an element that is no string") {
    CHECK_THAT(refused(other << 16u << 1u << 0xFEu << 0u), says("not those of a plain"));
  }
  SECTION("bytes at the end") { CHECK_THAT(refused(joined(vector_of({{"x"}}), {'y', 'z'})), says("2 bytes follow")); }
}

TEST_CASE("novels: a file is read whole or refused with its path", "[novels]") {
  CHECK_THROWS_WITH(examples::read_limited("no/such/file.rdb", 10), says("no/such/file.rdb"));
  CHECK_THROWS_WITH(examples::read_limited("tests/examples/novels.cpp", 10), says("more than 10 bytes"));
}

TEST_CASE("novels: the package's file gives 4,025,029 bytes", "[novels]") {
  const std::string path = "build/data/novels.rdb";
  if (!std::ifstream(path)) return gyre_test::skip(path + " is absent; ./run demo fetches it");
  const std::string text = examples::decode_novels(examples::read_limited(path, examples::novel_limits{}.file));
  CHECK(text.size() == 4'025'029);
  CHECK(text.starts_with("EMMA\n\nBy Jane Austen\n"));
}
