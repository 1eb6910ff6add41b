# Run by "cmake --install": the link mount.hushvol. mount(8) looks for helpers in /sbin alone, whatever
# the prefix of the program is; where /sbin is /usr/sbin by now, a package has to say the latter.
set(sbin /sbin)
if(IS_SYMLINK /sbin)
  file(REAL_PATH /sbin sbin)
endif()
set(program ${CMAKE_INSTALL_PREFIX}/${HUSHVOL_BINDIR}/hushvol)
if(program MATCHES "^/usr/" AND sbin MATCHES "^/usr/")
  file(RELATIVE_PATH program ${sbin} ${program})
endif()
file(MAKE_DIRECTORY $ENV{DESTDIR}${sbin})
file(CREATE_LINK ${program} $ENV{DESTDIR}${sbin}/mount.hushvol SYMBOLIC)
message(STATUS "Installing: $ENV{DESTDIR}${sbin}/mount.hushvol -> ${program}")
