// Runs a target on the files of folders, without a fuzzer: what was found stays found.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "input.hpp"

int main(int count, char** arguments) {
  int tried = 0;
  for (int i = 1; i < count; ++i)
    for (const auto& file : std::filesystem::directory_iterator(arguments[i])) {
      std::ifstream stream(file.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(stream), {});
      std::cout << file.path().filename().string() << std::endl;
      semel::fuzz::try_one(semel::fuzz::Input(bytes));
      ++tried;
    }
  std::cout << tried << " inputs" << std::endl;
  return tried > 0 ? 0 : 1;
}
