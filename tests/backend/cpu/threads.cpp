// The bits of every result in float, whatever the number of threads and the rows around.
#include "every_operation.hpp"

TEST_CASE("every result in float has the same bits for 1, 2 and 3 threads", "[threads]") { gyre_test::check_threads<float>(); }

TEST_CASE("a row in float has the same bits alone and among others") { gyre_test::check_rows<float>(); }
