// The calls that trials make, for every operation of the contract.
#pragma once

#include <gyre/parity/settings_attention.hpp>
#include <gyre/parity/settings_routing.hpp>
#include <gyre/parity/settings_rows.hpp>
#include <gyre/parity/settings_sampling.hpp>
#include <gyre/parity/settings_states.hpp>
#include <gyre/parity/settings_weights.hpp>
