// What attention sees of a past token that left the recurrence earlier (recurrent_depth, section 5.2).
#pragma once

#include <cstdint>

#include <gyre/config.hpp>

GYRE_BEGIN

/// Step t of a token looks for the keys and values that every past token wrote at step t. A past token that exited before has
/// none: then `latest` reads its deepest ones, `skip` leaves the token out of this attention.
enum class cache_lookup : std::uint8_t { latest, skip };

GYRE_END
