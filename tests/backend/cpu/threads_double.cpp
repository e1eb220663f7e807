// The bits of every result in double, whatever the number of threads and the rows around.
#include "every_operation.hpp"

TEST_CASE("every result in double has the same bits for 1, 2 and 3 threads", "[threads]") {
  gyre_test::check_threads<double>();
}

TEST_CASE("a row in double has the same bits alone and among others") { gyre_test::check_rows<double>(); }
