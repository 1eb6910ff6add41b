# Manual pages and completions. What they say of options comes from the built program itself, so that
# --help is the one place where an option is described; tests/structure/manual and
# tests/structure/completions compare them again.

find_program(SCDOC scdoc)
if(NOT SCDOC)
  message(FATAL_ERROR "scdoc is not there: install it, or leave the manual out by -DHUSHVOL_MANUAL=OFF")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(manual_tools ${CMAKE_SOURCE_DIR}/packaging/manual)
set(manual_out ${CMAKE_BINARY_DIR}/manual)
set(manual_files)
file(MAKE_DIRECTORY ${manual_out})

# manual_page(NAME SOURCE DEPENDENCY...): NAME from SOURCE, which scdoc understands
function(manual_page name source)
  add_custom_command(OUTPUT ${manual_out}/${name}
    COMMAND ${SCDOC} < ${source} > ${manual_out}/${name}
    DEPENDS ${source} VERBATIM)
  string(REGEX REPLACE ".*\\." "" section ${name})
  install(FILES ${manual_out}/${name} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  set(manual_files ${manual_files} ${manual_out}/${name} PARENT_SCOPE)
endfunction()

# manual_completion(SHELL NAME FOLDER): NAME, installed where that shell looks
function(manual_completion shell name folder)
  manual_made(${name} make-completions ${shell})
  install(FILES ${manual_out}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  set(manual_files ${manual_files} ${manual_out}/${name} PARENT_SCOPE)
endfunction()

# manual_made(OUTPUT TOOL ARGUMENT [DEPENDENCY...]): what TOOL prints when it has asked the program
function(manual_made name tool argument)
  add_custom_command(OUTPUT ${manual_out}/${name}
    COMMAND ${Python3_EXECUTABLE} ${manual_tools}/${tool} $<TARGET_FILE:hushvol> ${argument}
            > ${manual_out}/${name}
    DEPENDS hushvol ${manual_tools}/${tool} ${manual_tools}/helptext.py ${ARGN} VERBATIM)
endfunction()

set(frame ${CMAKE_SOURCE_DIR}/docs/man/hushvol.1.scd.in)
manual_made(hushvol.1.scd make-page ${frame} ${frame})
manual_page(hushvol.1 ${manual_out}/hushvol.1.scd)
manual_page(hushvol-format.5 ${CMAKE_SOURCE_DIR}/docs/man/hushvol-format.5.scd)
manual_page(hushvol.conf.5 ${CMAKE_SOURCE_DIR}/docs/man/hushvol.conf.5.scd)
manual_page(mount.hushvol.8 ${CMAKE_SOURCE_DIR}/docs/man/mount.hushvol.8.scd)
manual_page(pam_hushvol.8 ${CMAKE_SOURCE_DIR}/docs/man/pam_hushvol.8.scd)
manual_completion(bash hushvol.bash bash-completion/completions)
manual_completion(zsh _hushvol zsh/site-functions)
manual_completion(fish hushvol.fish fish/vendor_completions.d)
add_custom_target(manual ALL DEPENDS ${manual_files})
