// The one place that states gyre's version; CMake reads these three lines.
#pragma once

#define GYRE_VERSION_MAJOR 0
#define GYRE_VERSION_MINOR 1
#define GYRE_VERSION_PATCH 0
