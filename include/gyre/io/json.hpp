// JSON: values, reading, reading of configurations, writing.
#pragma once

#include <gyre/io/json_field.hpp>
#include <gyre/io/json_parser.hpp>
#include <gyre/io/json_value.hpp>
#include <gyre/io/json_writer.hpp>
