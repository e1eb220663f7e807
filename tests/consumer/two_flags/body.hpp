// The body of both parts: the same source, compiled with different flags.
#pragma once

#include <gyre/gyre.hpp>
#include <string>

#define TWO_FLAGS_TEXT_(x) #x
#define TWO_FLAGS_TEXT(x) TWO_FLAGS_TEXT_(x)

namespace {

inline std::string run_body() {
  try {
    gyre::fail("two_flags: thrown in one part, ", 42);
  } catch (const gyre::error& error) {
    return error.what();
  }
}

inline std::string instruction_set() { return TWO_FLAGS_TEXT(GYRE_ABI); }

}  // namespace
