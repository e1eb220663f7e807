// A unit of standard headers alone, to tell how fast a machine compiles: see compile_time.py. It must not change.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
int main(int count, char** words) {
  std::map<std::string, std::vector<double>> numbers;
  std::unordered_map<std::string, std::function<double(double)>> rules;
  std::mt19937_64 random(static_cast<unsigned long>(count));
  std::normal_distribution<double> normal;
  const std::regex word("([a-z]+)=([0-9.]+)(,([0-9.]+))*", std::regex::icase);
  for (int i = 1; i < count; ++i) {
    std::smatch found;
    const std::string text = words[i];
    if (std::regex_match(text, found, word)) numbers[found[1]].push_back(std::stod(found[2]) + normal(random));
    rules[text] = [i](double x) { return x * i; };
  }
  std::ostringstream out;
  for (auto& [name, values] : numbers) {
    std::sort(values.begin(), values.end(), [](double a, double b) { return a > b; });
    std::stable_sort(values.begin(), values.end());
    for (double v : values) out << name << ' ' << (rules.count(name) ? rules[name](v) : v) << '\n';
  }
  std::cout << out.str();
}
