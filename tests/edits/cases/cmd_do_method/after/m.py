import cmd
class Shell(cmd.Cmd):
    def do_go(self, line):
        self.found = line + "2"
def f():
    shell = Shell()
    shell.onecmd("go x")
    return shell.found
