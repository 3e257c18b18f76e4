package derive_test
import ("testing";"os";"encoding/json";"github.com/catalogd/catalogd/contract")
func TestZZDump(t *testing.T){
 out:=map[string][2]any{}
 for n,tc:=range losing { d:=newDeclared(t,tc.definitions,tc.args,contract.Closed); if !d.problems.HasErrors(){ out["L:"+n]=[2]any{string(d.spec.Schema),dumped(d.spec.Losses)} } else {out["L:"+n]=[2]any{"ERR "+d.problems[0].Message,nil}} }
 for _,tc:=range leafCases { d:=newDeclared(t,"",tc.args,contract.Closed); if !d.problems.HasErrors(){
  var got struct{Properties struct{X json.RawMessage `json:"x"`} `json:"properties"`}
  json.Unmarshal(d.spec.Schema,&got); x:=string(got.Properties.X); out["F:"+tc.name]=[2]any{x[1:len(x)-1],dumped(d.spec.Losses)} } else {out["F:"+tc.name]=[2]any{"ERR "+d.problems[0].Message,nil}} }
 f,_:=os.Create("/tmp/dump.json"); e:=json.NewEncoder(f); e.SetEscapeHTML(false); e.Encode(out)
}
