// novels IN OUT: writes the novels of janeaustenr's Rdata.rdb (IN) to one UTF-8 text file (OUT).
#include <cstdio>
#include <exception>
#include <iostream>

#include "novels.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: novels Rdata.rdb OUT.txt\n";
    return 2;
  }
  try {
    const examples::novel_limits limits;
    const std::string text = examples::decode_novels(examples::read_limited(argv[1], limits.file), limits);
    std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
    gyre::require(out.good(), "novels: cannot write ", argv[2]);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();  // a full disk may show only here
    if (!out) {
      std::remove(argv[2]);
      gyre::fail("novels: writing ", text.size(), " bytes to ", argv[2], " failed; is the disk full?");
    }
    std::cout << argv[2] << ": " << text.size() << " bytes\n";
    return 0;
  } catch (const std::exception& problem) {
    std::cerr << problem.what() << '\n';
    return 1;
  }
}
