// The operands of every operation of the contract.
#pragma once

#include <gyre/parity/signatures_attention.hpp>
#include <gyre/parity/signatures_routing.hpp>
#include <gyre/parity/signatures_rows.hpp>
#include <gyre/parity/signatures_sampling.hpp>
#include <gyre/parity/signatures_weights.hpp>
