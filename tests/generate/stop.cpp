// Text streams: stop strings across token borders, nothing held back without need, no character cut.
#include <catch2/catch.hpp>

#include <gyre/generate/stop.hpp>

#include <random>
#include <string>
#include <vector>

using gyre::text_stream;
using gyre::utf8_incomplete_tail;

namespace {

// The longest suffix of `text` that is a proper prefix of a stop string, by trying all.
std::size_t possible_stop(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t held = 0;
  for (const std::string& stop : stops)
    for (std::size_t n = 1; n < stop.size() && n <= text.size(); ++n)
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) held = std::max(held, n);
  return held;
}

// The text before the stop string that is complete first, the longest of those; all of it when there is none.
std::string before_stop(const std::string& text, const std::vector<std::string>& stops, std::string& stop) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    stop.clear();
    for (const std::string& s : stops)
      if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0 && s.size() > stop.size()) stop = s;
    if (!stop.empty()) return text.substr(0, end - stop.size());
  }
  return text;
}

}  // namespace

TEST_CASE("a stop string that crosses tokens ends the text before it", "[stop]") {
  text_stream stream({"\n\nUser:", "END"});
  CHECK(stream.push("Hello") == "Hello");
  CHECK(stream.push(" you\n") == " you");
  CHECK(stream.push("\nUs") == "");
  CHECK(stream.push("ing E") == "\n\nUsing ");
  CHECK(stream.push("NE") == "EN");
  CHECK_FALSE(stream.stopped());
  CHECK(stream.push("N") == "");
  CHECK(stream.push("D and more") == "");
  CHECK(stream.stopped());
  CHECK(stream.stop() == "END");
  CHECK(stream.push("ignored") == "");
  CHECK(stream.finish() == "");
}

TEST_CASE("what was held back comes out at the end, and a stream can start again", "[stop]") {
  text_stream stream({"stop"});
  CHECK(stream.push("do not sto") == "do not ");
  CHECK(stream.finish() == "sto");
  CHECK(stream.push("p") == "p");  // the end was the end
  CHECK(stream.push("stop") == "");
  CHECK(stream.stopped());
  stream.reset();
  CHECK_FALSE(stream.stopped());
  CHECK(stream.stop() == "");
  CHECK(stream.push("on\xC3") == "on");
  CHECK(stream.push("\xA9s") == "\xC3\xA9");
  CHECK(stream.finish() == "s");

  text_stream plain;
  CHECK(plain.push("anything") == "anything");
  CHECK(plain.push("\xE2\x82") == "");
  CHECK(plain.finish() == "\xE2\x82");  // nothing is lost, even if it never becomes a character
  CHECK_THROWS_WITH(text_stream({"a", ""}), Catch::Contains("stop string 1 is empty"));
}

TEST_CASE("of stop strings that end together the longest counts", "[stop]") {
  text_stream stream({"b", "ab", "zb"});
  CHECK(stream.push("xa") == "x");
  CHECK(stream.push("b") == "");
  CHECK(stream.stop() == "ab");
}

TEST_CASE("streams agree with a search of the whole text, however it is divided, and hold back only what they must", "[stop]") {
  std::mt19937 random(3);
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    // Two letters and the pieces of two characters, so that partial matches and broken characters abound.
    const std::string alphabet = round % 2 == 0 ? "ab" : std::string("ab\xC3\xA9\xE2\x82");
    const auto some = [&](std::size_t size) {
      std::string s;
      for (std::size_t i = 0; i < size; ++i) s += alphabet[random() % alphabet.size()];
      return s;
    };
    std::vector<std::string> stops;
    for (std::size_t i = random() % 4; i > 0; --i) stops.push_back(some(1 + random() % 6));
    const std::string text = some(random() % 40);
    text_stream stream(stops);
    std::string out;
    std::size_t at = 0;
    while (at < text.size() && !stream.stopped()) {
      const std::size_t size = std::min<std::size_t>(random() % 5, text.size() - at);
      out += stream.push(text.substr(at, size));
      at += size;
      if (stream.stopped()) break;
      std::string certain = text.substr(0, at);
      certain.resize(at - possible_stop(certain, stops));
      certain.resize(certain.size() - utf8_incomplete_tail(certain));
      REQUIRE(out == certain);
    }
    out += stream.finish();
    std::string stop;
    REQUIRE(out == before_stop(text, stops, stop));
    REQUIRE(stream.stop() == stop);
    stopped += stream.stopped();
  }
  CHECK(stopped > 5000);
}

TEST_CASE("the incomplete tail is what some bytes can complete, by trying all", "[stop]") {
  // utf8_character is tested by itself; here every tail of one or two bytes, and those of three with interesting leads.
  const auto completes = [](std::string tail) {
    const std::size_t given = tail.size();
    for (int next = 0x80; next < 0xC0; ++next) {
      // The bytes after the second have no restrictions, so one free byte is enough.
      std::string full = tail + static_cast<char>(next) + "\x80\x80";
      if (gyre::utf8_character(full) > given) return true;
    }
    return false;
  };
  long tried = 0, wrong = 0;  // a REQUIRE for each takes longer than all else
  const auto check = [&](const std::string& tail) {
    // The longest suffix that begins a character; shorter ones begin with continuation bytes.
    std::size_t expected = 0;
    for (std::size_t n = 1; n <= tail.size(); ++n)
      if (completes(tail.substr(tail.size() - n))) expected = n;
    ++tried;
    wrong += utf8_incomplete_tail(tail) != expected || utf8_incomplete_tail("x" + tail) != expected;
  };
  check("");
  for (int a = 0; a < 256; ++a) {
    check(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) {
      check({static_cast<char>(a), static_cast<char>(b)});
      if (a >= 0xE0)
        for (int c : {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC3, 0xE2, 0xF0, 0xFF})
          check({static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)});
    }
  }
  CHECK(tried == 1 + 256 + 256 * 256 + 32 * 256 * 14);
  CHECK(wrong == 0);
  CHECK(utf8_incomplete_tail("\xF0\x9F\x98") == 3);
  CHECK(utf8_incomplete_tail("\xF0\x9F\x98\x80") == 0);
  CHECK(utf8_incomplete_tail("\xC0") == 0);
  CHECK(utf8_incomplete_tail("\xE0\x80") == 0);
  CHECK(utf8_incomplete_tail("\xED\xA0") == 0);
  CHECK(utf8_incomplete_tail("\xF4\x90") == 0);
  CHECK(utf8_incomplete_tail("\x80\x80") == 0);
}
