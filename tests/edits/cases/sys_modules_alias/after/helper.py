import conf
