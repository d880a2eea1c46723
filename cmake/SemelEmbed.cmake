# semel_embed(TARGET <target> NAMESPACE <a::b> FILES <file>...): compiles text files into a target, which reads them by
# `std::span<const semel::EmbeddedFile> semel::<NAMESPACE>::embedded_files()` (declare it beside its use).
function(semel_embed)
  cmake_parse_arguments(arg "" "TARGET;NAMESPACE" "FILES" ${ARGN})
  set(entries "")
  foreach(file ${arg_FILES})
    cmake_path(GET file FILENAME name)
    file(READ ${file} text)
    string(APPEND entries "    {\"${name}\", R\"~EMBED~(${text})~EMBED~\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${arg_TARGET}_embedded.cpp)
  file(GENERATE OUTPUT ${output} CONTENT "#include \"base/embedded.hpp\"\n
#include <array>
#include <span>\n
namespace semel::${arg_NAMESPACE} {
std::span<const EmbeddedFile> embedded_files();
std::span<const EmbeddedFile> embedded_files() {
  static constexpr EmbeddedFile files[] = {
${entries}  };
  return files;
}
}  // namespace semel::${arg_NAMESPACE}\n")
  target_sources(${arg_TARGET} PRIVATE ${output})
endfunction()
