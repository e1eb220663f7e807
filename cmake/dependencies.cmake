# What gyre::gyre links: threads, and Eigen, from the system or the surrounding project if they have it.
# CMAKE_THREAD_PREFER_PTHREAD and the like stay the user's choice.
find_package(Threads REQUIRED)

if(NOT TARGET Eigen3::Eigen)
  find_package(Eigen3 3.4 CONFIG QUIET)
endif()
if(NOT TARGET Eigen3::Eigen)
  message(STATUS "gyre: Eigen 3.4 was not found, fetching it")
  include(FetchContent)
  # Only the headers are wanted. A SOURCE_SUBDIR without a CMakeLists.txt keeps Eigen's own tests, options and targets out of
  # the user's project.
  FetchContent_Declare(eigen
    URL https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.gz
    URL_HASH SHA256=8586084f71f9bde545ee7fa6d00288b264a2b7ac3607b974e54d13e7162c1c72
    SOURCE_SUBDIR headers_only)
  FetchContent_MakeAvailable(eigen)
  add_library(Eigen3::Eigen INTERFACE IMPORTED GLOBAL)
  target_include_directories(Eigen3::Eigen INTERFACE ${eigen_SOURCE_DIR})
endif()
