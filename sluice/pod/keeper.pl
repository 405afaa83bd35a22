# Keeps together what belongs to a worker: perl -e TEXT COMMAND…
# Makes itself and the command child subreapers (prctl(2)): orphans below are left to the command and, once that has
# ended, however it did, to this process, which kills them. The command is given "contained" as its last argument if so.
# Its session is its own, and no signal is ignored, as sh lets background processes do.
# The numbers of prctl and setsid on x86-64, AArch64 and RISC-V, by the machines' numbers in ELF.
my %numbers = (62 => [157, 112], 183 => [167, 157], 243 => [167, 157]);
my $head = "";
open my $program, "<", "/proc/self/exe";
read $program, $head, 20;
my ($prctl, $setsid) = @{$numbers{unpack "x18 v", $head . "\0" x 20} // []};
if ($setsid) { syscall($setsid) } else { require POSIX; POSIX::setsid() }
@SIG{"INT", "QUIT"} = ("DEFAULT", "DEFAULT");
sub adopt { return $prctl && syscall($prctl, 36, 1, 0, 0, 0) == 0 }
push @ARGV, "contained" if adopt();
my $child = fork;
if (!$child) {
  adopt();
  exec @ARGV or exit 127;
}
waitpid $child, 0;
for (1 .. 40) {  # what hangs in a driver cannot be killed
  open my $list, "<", "/proc/$$/task/$$/children" or last;
  my @left = split " ", <$list> // "" or last;
  kill "KILL", @left;
  select undef, undef, undef, 0.05;
  1 while waitpid(-1, 1) > 0;
}
