// The smallest program with gyre in it.
#include <gyre/gyre.hpp>
#include <iostream>

int main() {
  std::cout << "gyre " << GYRE_VERSION_MAJOR << '.' << GYRE_VERSION_MINOR << '.' << GYRE_VERSION_PATCH << '\n';
  try {
    gyre::fail("embed: an error of the library, code ", 7);
  } catch (const gyre::error& error) {
    std::cout << error.what() << '\n';
  }
}
