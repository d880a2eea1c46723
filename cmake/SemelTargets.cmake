# How a layer, and a test, is declared. Every layer is a target of its own, and its headers can be included only
# by those who link it: `#include "base/digest.hpp"` compiles for targets that name semel_base among their DEPENDS.

include(GNUInstallDirs)

# semel_layer(NAME FOLDER <below src> SOURCES ... DEPENDS ... LIBRARIES ...)
#   FOLDER     where the layer lives; its headers are included by that path
#   DEPENDS    Semel layers that it may include
#   LIBRARIES  foreign libraries; they stay out of its own dependants' include path
function(semel_layer name)
  cmake_parse_arguments(arg "" "FOLDER" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  semel_compile_options(${name})
  set(view ${PROJECT_BINARY_DIR}/layers/${name})
  cmake_path(GET arg_FOLDER PARENT_PATH parent)
  file(MAKE_DIRECTORY ${view}/${parent})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER} ${view}/${arg_FOLDER} SYMBOLIC)
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${view}>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY semel_layers ${name})
endfunction()

function(semel_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(PROJECT_IS_TOP_LEVEL)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      # g++ 12 takes Asio's pair of operators for a coroutine's frame for a mismatch where it inlines but one of them.
      target_compile_options(${target} PRIVATE -Wno-mismatched-new-delete)
    endif()
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                           -Wno-missing-field-initializers)
    if(SEMEL_WERROR)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
  if(SEMEL_SANITIZE)
    target_compile_options(${target} PUBLIC -fsanitize=${SEMEL_SANITIZE} -fno-sanitize-recover=all
                           -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${SEMEL_SANITIZE})
    if(SEMEL_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-tsan)  # Asio's fences, about which g++ can do nothing
    endif()
    if(SEMEL_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL Clang)
      target_compile_options(${target} PUBLIC -fno-sanitize=function)  # libraries are built without type information
    endif()
  endif()
endfunction()

# semel_test(NAME SOURCES ... DEPENDS ... LABELS ...): a GoogleTest program, run by ctest.
function(semel_test name)
  if(NOT SEMEL_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  semel_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  foreach(source ${arg_SOURCES})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    set_property(GLOBAL APPEND PROPERTY semel_claimed_tests ${source})
  endforeach()
endfunction()

# A test file that no target claims is a test that nobody runs.
function(semel_refuse_unclaimed_tests)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_test.cpp ${PROJECT_SOURCE_DIR}/app/*_test.cpp
       ${PROJECT_SOURCE_DIR}/sim/*_test.cpp ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  get_property(claimed GLOBAL PROPERTY semel_claimed_tests)
  list(REMOVE_ITEM found ${claimed})
  if(found)
    message(FATAL_ERROR "No semel_test() claims: ${found}")
  endif()
endfunction()
