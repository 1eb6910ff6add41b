# Units for systemd, with the path that the program is installed to. They go to lib/systemd below the
# prefix, where systemd looks for the prefixes /usr and /usr/local; below another one they have to be
# linked: "systemctl link", and for a user's units ~/.config/systemd/user.

set(systemd_out ${CMAKE_BINARY_DIR}/systemd)

# systemd_units(KIND NAME...): units of packaging/systemd/KIND
function(systemd_units kind)
  foreach(name ${ARGN})
    configure_file(packaging/systemd/${kind}/${name}.in ${systemd_out}/${kind}/${name} @ONLY)
    install(FILES ${systemd_out}/${kind}/${name} DESTINATION lib/systemd/${kind})
  endforeach()
endfunction()

systemd_units(user hushvol@.service)
systemd_units(system hushvol@.service hushvol-sleep.service)
