# Run by cpack when all files are in place and none is packed yet: what Debian wants otherwise than
# "cmake --install" leaves it.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
if(NOT EXISTS ${root}/usr/bin/hushvol)
  message(FATAL_ERROR "there is no usr/bin/hushvol in ${root}")
endif()

# compressed(FILE): FILE.gz in its place, always the same bytes
function(compressed file)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${file}.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

file(GLOB pages ${root}/usr/share/man/man*/*.[1-9])
foreach(page ${pages})
  compressed(${page})
endforeach()

set(changelog ${root}/usr/share/doc/hushvol/changelog.Debian)
file(COPY_FILE ${CPACK_HUSHVOL_FILES}/changelog ${changelog})
compressed(${changelog})

# Debian's zsh looks here and not in site-functions.
set(zsh ${root}/usr/share/zsh)
if(EXISTS ${zsh}/site-functions)
  file(RENAME ${zsh}/site-functions ${zsh}/vendor-completions)
endif()

# Folders have been made under the umask of whoever runs this.
file(CHMOD_RECURSE ${root} DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
     GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
