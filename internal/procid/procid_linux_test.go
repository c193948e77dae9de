package procid

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// startSleep runs the sleep program under a file name of the test's choice,
// which becomes the name the kernel shows for it.
func startSleep(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(sleep, link))
	cmd := exec.Command(link, "600")
	cmd.Args[0] = "sleep" // multi-call binaries choose by it
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestChildLifeCycle(t *testing.T) {
	t.Parallel()
	cmd := startSleep(t, "sleep")
	id, err := Of(cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, id.PID())
	require.Equal(t, Alive, id.Liveness())

	require.NoError(t, cmd.Process.Kill())
	// Blocks until the child is a zombie, and leaves it one.
	require.NoError(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	require.NoError(t, unix.Kill(cmd.Process.Pid, 0), "a zombie still has its pid")
	require.Equal(t, Dead, id.Liveness(), "zombie")

	require.Error(t, cmd.Wait())
	require.Equal(t, Dead, id.Liveness(), "collected")
	_, err = Of(cmd.Process.Pid)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestHostileProcessName(t *testing.T) {
	t.Parallel()
	cmd := startSleep(t, "a) Z 1 (\n)b")
	id, err := Of(cmd.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, Alive, id.Liveness())
}

func TestLivenessOfChangedIdentity(t *testing.T) {
	t.Parallel()
	cmd := startSleep(t, "sleep")
	tests := []struct {
		name   string
		change func(*ID)
		want   Liveness
	}{
		{"unchanged", func(*ID) {}, Alive},
		{"other boot", func(id *ID) { id.bootID = boot }, Dead},
		{"other boot and namespace", func(id *ID) { id.bootID = boot; id.pidNS++ }, Dead},
		{"other pid namespace", func(id *ID) { id.pidNS++ }, Unknown},
		{"other pid namespace, no such pid", func(id *ID) { id.pidNS++; id.pid = maxPID }, Unknown},
		{"other time namespace", func(id *ID) { id.timeNS++ }, Unknown},
		{"started later", func(id *ID) { id.start++ }, Dead},
		{"started earlier, pid reused", func(id *ID) { id.start-- }, Dead},
		{"no such pid", func(id *ID) { id.pid = maxPID }, Dead},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, err := Of(cmd.Process.Pid)
			require.NoError(t, err)
			tt.change(&id)
			require.Equal(t, tt.want, id.Liveness())
		})
	}
}

func TestOfRefusesPIDOutOfRange(t *testing.T) {
	t.Parallel()
	for _, pid := range []int{-1, 0} {
		_, err := Of(pid)
		require.Error(t, err)
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

// fakeProc is a /proc of plain files in which the caller itself can be read.
func fakeProc(t *testing.T) procfs {
	t.Helper()
	p := procfs(t.TempDir())
	self := strconv.Itoa(os.Getpid())
	require.NoError(t, os.MkdirAll(p.path(self+"/ns"), 0o700))
	require.NoError(t, os.MkdirAll(p.path("sys/kernel/random"), 0o700))
	require.NoError(t, os.Symlink(self, p.path("self")))
	require.NoError(t, os.Symlink("pid:[4026531836]", p.path("self/ns/pid")))
	require.NoError(t, os.WriteFile(p.path("sys/kernel/random/boot_id"), []byte(boot+"\n"), 0o600))
	p.addProcess(t, os.Getpid(), "R", "8", "500")
	return p
}

func (p procfs) addProcess(t *testing.T, pid int, state, threads, start string) {
	t.Helper()
	dir := p.path(strconv.Itoa(pid))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(dir+"/stat", []byte(statLine("x", state, threads, start)), 0o600))
}

func statLine(comm, state, threads, start string) string {
	return "7 (" + comm + ") " + state + " 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 " + threads + " 0 " + start + " 3133440 390 0\n"
}

func TestIdentifyWithoutTimeNamespaces(t *testing.T) {
	t.Parallel()
	id, err := fakeProc(t).identify(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, ID{boot, 4026531836, 0, os.Getpid(), 500}, id)
}

// TestUnreliableProc shows that nothing is claimed, not even Dead, when the
// caller cannot tell where it is itself.
func TestUnreliableProc(t *testing.T) {
	t.Parallel()
	bootFile := "sys/kernel/random/boot_id"
	tests := []struct {
		name  string
		spoil func(t *testing.T, p procfs)
	}{
		{"nothing mounted", func(t *testing.T, p procfs) { require.NoError(t, os.RemoveAll(string(p))) }},
		{"numbers of another pid namespace", func(t *testing.T, p procfs) {
			require.NoError(t, os.Remove(p.path("self")))
			require.NoError(t, os.Symlink("1", p.path("self")))
		}},
		{"no boot id", func(t *testing.T, p procfs) { require.NoError(t, os.Remove(p.path(bootFile))) }},
		{"malformed boot id", func(t *testing.T, p procfs) {
			require.NoError(t, os.WriteFile(p.path(bootFile), []byte("a:b\n"), 0o600))
		}},
		{"boot id of another file system", func(t *testing.T, p procfs) {
			require.NoError(t, os.Remove(p.path(bootFile)))
			require.NoError(t, os.Symlink(procRoot.path(bootFile), p.path(bootFile)))
		}},
		{"no pid namespace", func(t *testing.T, p procfs) { require.NoError(t, os.Remove(p.path("self/ns/pid"))) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := fakeProc(t)
			tt.spoil(t, p)
			_, err := p.identify(os.Getpid())
			require.Error(t, err)
			require.NotErrorIs(t, err, fs.ErrNotExist)
			require.Equal(t, Unknown, p.probe(ID{"another", 1, 1, maxPID, 1}))
		})
	}
}

func TestProbeProcessEntry(t *testing.T) {
	t.Parallel()
	const pid = maxPID // no process has it, so kill(2) says ESRCH
	tests := []struct {
		name                  string
		state, threads, start string
		want                  Liveness
	}{
		{"sleeping", "S", "1", "500", Alive},
		{"stopped", "T", "1", "500", Alive},
		{"pid reused", "S", "1", "501", Dead},
		{"zombie", "Z", "1", "500", Dead},
		{"zombie without threads", "Z", "0", "500", Dead},
		{"dead", "X", "1", "500", Dead},
		{"first thread ended, others run", "Z", "2", "500", Alive},
		{"malformed, pid free", "S", "1", "soon", Dead},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := fakeProc(t)
			p.addProcess(t, pid, tt.state, tt.threads, tt.start)
			require.Equal(t, tt.want, p.probe(ID{boot, 4026531836, 0, pid, 500}))
		})
	}
}

// TestProbeHiddenProcess covers hidepid: the entry is missing, the process is
// not.
func TestProbeHiddenProcess(t *testing.T) {
	t.Parallel()
	p := fakeProc(t)
	require.Equal(t, Unknown, p.probe(ID{boot, 4026531836, 0, os.Getppid(), 500}))
	require.Equal(t, Dead, p.probe(ID{boot, 4026531836, 0, maxPID, 500}))
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	good := stat{state: 'S', threads: 3, start: 60410}
	tests := []struct {
		name string
		in   string
		want stat
		ok   bool
	}{
		{"plain", statLine("cat", "S", "3", "60410"), good, true},
		{"spaces and parentheses", statLine("a) Z 1 2 (b) ", "S", "3", "60410"), good, true},
		{"line break", statLine("a\n)", "S", "3", "60410"), good, true},
		{"empty name", statLine("", "S", "3", "60410"), good, true},
		{"empty", "", stat{}, false},
		{"no name", "7 cat S 1", stat{}, false},
		{"ends behind the name", "7 (cat)", stat{}, false},
		{"one field short", "7 (cat) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0", stat{}, false},
		{"long state", statLine("cat", "SS", "3", "60410"), stat{}, false},
		{"threads not a number", statLine("cat", "S", "x", "60410"), stat{}, false},
		{"start negative", statLine("cat", "S", "3", "-1"), stat{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseStat(tt.in)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("cat", "")
	f.Add("a) Z 1 (b", " 1 2 3")
	f.Fuzz(func(t *testing.T, comm, garbage string) {
		parseStat(garbage)
		parseStat(comm + ")" + garbage)
		got, ok := parseStat(statLine(comm, "S", "3", "60410"))
		require.True(t, ok)
		require.Equal(t, stat{state: 'S', threads: 3, start: 60410}, got)
	})
}
