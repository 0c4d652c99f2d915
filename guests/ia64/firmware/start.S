// The entry of the application: a function descriptor, as EFI images have it.
        .section .descriptor, "aw"
        .global entry
        .align 16
entry:  data8 main#
        data8 __gp#
