#include <iostream>

double loss(int steps);

int main() {
  std::cout << loss(1) << ' ' << loss(4) << '\n';
  return loss(1) > 0 && loss(4) > 0 ? 0 : 1;
}
