// SLUICE_API marks what a shared libsluice.so exports; everything else in it is hidden.
//
// SLUICE_API_BEGIN and SLUICE_API_END enclose the declarations of an installed header (after its #include
// lines, before its end): everything declared between them, types and their members included, is visible.
#pragma once

#define SLUICE_API __attribute__((visibility("default")))
#define SLUICE_API_BEGIN _Pragma("GCC visibility push(default)")
#define SLUICE_API_END _Pragma("GCC visibility pop")
