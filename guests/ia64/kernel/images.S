// The programs, as the build script made them: ELF images from which pages are taken on demand. PROGRAMS is the list of
// their names, with commas.

	.section .rodata
	.align	16
	.global	program_images
program_images:
	.irp	name, PROGRAMS
	data8	.Lname_\name, .Lstart_\name, .Lend_\name
	.endr
	data8	0, 0, 0
	.irp	name, PROGRAMS
.Lname_\name:
	stringz	"\name"
	.endr

	.section .rodata.images, "a"
	.irp	name, PROGRAMS
	.align	16384
.Lstart_\name:
	.incbin	"\name"
.Lend_\name:
	.endr
	.align	16384
