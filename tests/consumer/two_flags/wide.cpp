#include "body.hpp"

part_result run_wide(std::vector<float> from) { return run_body(std::move(from)); }
