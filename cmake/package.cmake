# Install rules and the CMake package that find_package(gyre) reads. Nothing in it depends on the machine, so it lives in share/.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(gyre_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/gyre)
install(DIRECTORY include/gyre DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS gyre gyre_parity EXPORT gyre-targets)
install(EXPORT gyre-targets NAMESPACE gyre:: DESTINATION ${gyre_package_dir})
configure_package_config_file(cmake/gyre-config.cmake.in ${PROJECT_BINARY_DIR}/gyre-config.cmake
  INSTALL_DESTINATION ${gyre_package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change interfaces.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gyre-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/gyre-config.cmake ${PROJECT_BINARY_DIR}/gyre-config-version.cmake cmake/gyre_instantiate.cmake
  cmake/gyre_instantiation.hpp.in cmake/gyre_simt.cmake cmake/gyre_cuda.cmake DESTINATION ${gyre_package_dir})
install(DIRECTORY src/simt/ DESTINATION ${gyre_package_dir}/simt)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
