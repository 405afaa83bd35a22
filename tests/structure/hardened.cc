// A program that is compiled as a release is: what it does, each option has something to guard.
#include <cstdio>
#include <cstring>
#include <vector>

int main(int count, char** arguments) {
  char text[64];
  std::strcpy(text, arguments[count - 1]);
  std::vector<char> copy(text, text + std::strlen(text));
  copy.push_back('\0');
  return std::printf("%s %c\n", copy.data(), copy[static_cast<size_t>(count)]) > 0 ? 0 : 1;
}
