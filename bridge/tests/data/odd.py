"""An MCP server over standard input and output that is odd in the way its argument names."""
import sys,json,os,time
case=sys.argv[1]
def out(o): sys.stdout.write(json.dumps(o)+'\n');sys.stdout.flush()
T=lambda n,s=None,**k:dict({'name':n,'inputSchema':s if s is not None else {'type':'object','properties':{}}},**k)
tools={
'dangling_ref':[T('a',{'type':'object','properties':{'x':{'$ref':'#/$defs/Nope'}}})],
'bool_schema_prop':[T('a',{'type':'object','properties':{'x':True}})],
'bool_input_schema':[T('a',True),T('b')],
'no_type_input':[T('a',{}),T('b')],
'null_input':[T('a',None)|{'inputSchema':None},T('b')],
'missing_input':[{'name':'a'},T('b')],
'root_anyof':[T('a',{'anyOf':[{'type':'object'}]}),T('b')],
'recursive':[T('a',{'type':'object','properties':{'n':{'$ref':'#/$defs/N'}},'$defs':{'N':{'type':'object','properties':{'c':{'type':'array','items':{'$ref':'#/$defs/N'}}}}}})],
'output_nonobject':[T('a',outputSchema={'type':'array','items':{}}),T('b')],
'output_notype':[T('a',outputSchema={'description':'x'}),T('b')],
'excl_min_bool':[T('a',{'type':'object','properties':{'x':{'type':'integer','minimum':0,'exclusiveMinimum':True}}})],
'dup_names':[T('a',description='1'),T('a',description='2')],
'empty_name':[T(''),T('b')],
'long_name':[T('x'*200),T('b')],
'uni_name':[T('工具.读/取'),T('b')],
'desc_null':[T('a',description=None),T('b')],
'required_null':[T('a',{'type':'object','properties':{},'required':None}),T('b')],
'annot_bad':[T('a',annotations={'readOnlyHint':'yes'}),T('b')],
}
calls={
'content_missing':{'structuredContent':{'ok':1}},
'content_null':{'content':None},
'content_str':{'content':'hello'},
'content_unknown':{'content':[{'type':'video','data':'x'},{'type':'text','text':'ok'}]},
'err_structured':{'isError':True,'content':[{'type':'text','text':'bad'}],'structuredContent':{'code':'E1'}},
'big_int':{'content':[],'structuredContent':{'id':9007199254740993123}},
'schema_mismatch':{'content':[{'type':'text','text':'{}'}],'structuredContent':{'n':'str'}},
'schema_nostruct':{'content':[{'type':'text','text':'{"n":1}'}]},
'err_outschema':{'isError':True,'content':[{'type':'text','text':'bad'}]},
}
for line in sys.stdin:
    try:m=json.loads(line)
    except Exception: continue
    i=m.get('id');me=m.get('method')
    if me=='initialize':
        if case=='banner': sys.stdout.write('Server starting...\n✓ ready\n');sys.stdout.flush()
        out({'jsonrpc':'2.0','id':i,'result':{'protocolVersion':m['params'].get('protocolVersion','2025-06-18') if case!='oldproto' else '2024-10-07','capabilities':{'tools':{}},'serverInfo':{'name':'odd','version':'1'}}})
    elif me=='tools/list':
        if case=='cursor_loop': out({'jsonrpc':'2.0','id':i,'result':{'tools':[T('a')],'nextCursor':'same'}});continue
        if case=='cursor_empty': out({'jsonrpc':'2.0','id':i,'result':{'tools':[T('a')],'nextCursor':''}});continue
        if case=='id_string': out({'jsonrpc':'2.0','id':str(i),'result':{'tools':[T('a')]}});continue
        if case=='err_string': out({'jsonrpc':'2.0','id':i,'error':'boom'});continue
        if case=='tools_null': out({'jsonrpc':'2.0','id':i,'result':{'tools':None}});continue
        if case=='die_mid': os._exit(3)
        if case in('schema_mismatch','schema_nostruct','err_outschema'): out({'jsonrpc':'2.0','id':i,'result':{'tools':[T('a',outputSchema={'type':'object','properties':{'n':{'type':'integer'}},'required':['n']})]}});continue
        out({'jsonrpc':'2.0','id':i,'result':{'tools':tools.get(case,[T('a')])}})
    elif me=='tools/call':
        if case=='die_call': os._exit(3)
        if case=='hang_call': time.sleep(600)
        out({'jsonrpc':'2.0','id':i,'result':calls.get(case,{'content':[{'type':'text','text':'ok'}]})})
    elif i is not None:
        out({'jsonrpc':'2.0','id':i,'error':{'code':-32601,'message':'Method not found'}})
