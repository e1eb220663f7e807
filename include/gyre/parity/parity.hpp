// The parity harness: any operation, layer or training step on two backends from the same inputs. docs/parity.md explains it; the
// matcher for Catch2 is in gyre/parity/catch.hpp.
#pragma once

#include <gyre/parity/files.hpp>
#include <gyre/parity/lockstep.hpp>
#include <gyre/parity/record.hpp>
#include <gyre/parity/selection.hpp>
#include <gyre/parity/step.hpp>
#include <gyre/parity/suite.hpp>
#include <gyre/parity/wrapped.hpp>
