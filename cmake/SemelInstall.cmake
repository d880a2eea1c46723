# What users link, from their own tree (add_subdirectory) or installed (find_package): semel::semel, and one target for
# each store and source that was built: semel::sqlite, semel::postgres, semel::file, semel::http.

include(CMakePackageConfigHelpers)

add_library(semel_semel INTERFACE)
target_link_libraries(semel_semel INTERFACE semel_engine)

# What is for tests stays here.
get_property(layers GLOBAL PROPERTY semel_layers)
list(REMOVE_ITEM layers semel_testing)

set(components "")
foreach(layer semel_semel ${layers})
  string(REGEX REPLACE "^semel_" "" component ${layer})
  list(APPEND components ${component})
  set_target_properties(${layer} PROPERTIES EXPORT_NAME ${component})
  add_library(semel::${component} ALIAS ${layer})
endforeach()

if(NOT SEMEL_INSTALL)
  return()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/semel)
install(TARGETS semel_semel ${layers} EXPORT semel_targets)
if(TARGET semel)
  install(TARGETS semel)
endif()
install(EXPORT semel_targets NAMESPACE semel:: FILE semel-targets.cmake DESTINATION ${package_folder})
install(DIRECTORY include/semel DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp"
        PATTERN "testing" EXCLUDE)

set(SEMEL_COMPONENTS ${components})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/semel-config.cmake.in ${PROJECT_BINARY_DIR}/semel-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# Before 1.0 a minor release may change the API.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/semel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/semel-config.cmake ${PROJECT_BINARY_DIR}/semel-config-version.cmake
        DESTINATION ${package_folder})
