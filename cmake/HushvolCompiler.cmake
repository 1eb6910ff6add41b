# Warnings, hardening and sanitizers, as one interface library that every target links.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

include(CheckPIESupported)
check_pie_supported()

add_library(hushvol_compiler INTERFACE)
target_compile_options(hushvol_compiler INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes
  -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wvla -Wformat=2
  -fstack-protector-strong -fno-strict-aliasing)
if(HUSHVOL_WERROR)
  target_compile_options(hushvol_compiler INTERFACE -Werror)
endif()
target_link_options(hushvol_compiler INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)

if(HUSHVOL_SANITIZE)
  target_compile_options(hushvol_compiler INTERFACE
    -fsanitize=${HUSHVOL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(hushvol_compiler INTERFACE -fsanitize=${HUSHVOL_SANITIZE})
  target_compile_definitions(hushvol_compiler INTERFACE HUSHVOL_SANITIZED=1)
else()
  # Sanitizers bring their own checks and do not go together with these.
  target_compile_options(hushvol_compiler INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>
    -fstack-clash-protection)
endif()

if(HUSHVOL_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HUSHVOL_FUZZ needs clang")
  endif()
  # Coverage for libFuzzer in all code; only the targets themselves link its main.
  target_compile_options(hushvol_compiler INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(hushvol_compiler INTERFACE -fsanitize=fuzzer-no-link)
endif()
