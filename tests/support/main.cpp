// Catch2's main, apart from the tests because it takes longest to compile. It adds skipped cases and the list for ctest.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "skip.hpp"

namespace {

std::size_t cases_run = 0, cases_skipped = 0;

struct run_counter : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override { ++cases_run; }
};

// A test case's name as Catch2's command line wants it.
std::string as_test_spec(const std::string& name) {
  std::string spec;
  for (const char c : name) {
    if (std::string_view("\\,[]\"~").find(c) != std::string_view::npos) spec += '\\';
    spec += c;
  }
  return spec;
}

// Writes one add_test per test case, with its tags as labels. `[===[` quotes whatever a name may contain.
void write_ctest(const char* program, const std::string& path, const std::string& folder, const std::string& working_directory,
                 const Catch::Session& session) {
  std::ofstream out(path);
  const auto quoted = [](const std::string& text) { return " [===[" + text + "]===]"; };
  for (const Catch::TestCase& test : Catch::getAllTestCasesSorted(const_cast<Catch::Session&>(session).config())) {
    if (test.isHidden()) continue;
    std::string labels = folder;
    for (const std::string& tag : test.tags) labels += ';' + tag;
    const auto tagged = [&](std::string_view tag) {
      return std::find(test.lcaseTags.begin(), test.lcaseTags.end(), tag) != test.lcaseTags.end();
    };
    const std::string name = quoted(folder + ": " + test.name);
    out << "add_test(" << name << quoted(program) << quoted(as_test_spec(test.name)) << ")\nset_tests_properties(" << name
        << " PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 WORKING_DIRECTORY" << quoted(working_directory) << " LABELS"
        << quoted(labels) << (tagged("slow") || tagged("threads") ? " PROCESSORS 2" : "")
        << (tagged("slow") || tagged("early") ? " COST 1000" : "")  // ctest starts these first
        << (tagged("serial") ? " RUN_SERIAL TRUE" : "") << ")\n";
  }
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace

CATCH_REGISTER_LISTENER(run_counter)

void gyre_test::skip(const std::string& reason) {
  ++cases_skipped;
  std::cout << "skipped: " << reason << '\n';
}

int main(int argc, char** argv) {
  Catch::Session session;
  if (argc == 5 && std::string_view(argv[1]) == "--write-ctest") {
    write_ctest(argv[0], argv[2], argv[3], argv[4], session);
    return 0;
  }
  const int failures = session.run(argc, argv);
  return failures == 0 && cases_run > 0 && cases_run == cases_skipped ? 77 : failures;
}
